"""What a cell reads of classes: what a nearer class gets later, or another base holds, is seen."""

import copy
import operator
from typing import NamedTuple

import numpy as np
import pytest

import edbatch as eb

CASES = {}


def case(make):
    """A function that makes a cell to call, and changes of what it reads."""
    CASES[make.__name__] = make
    return make


def value_of(call, cells):
    with eb.options(cells=cells), eb.Graph(policy="depth"):
        return call(eb.input([0.3, -0.2])).value()


def family(read, *changes, **attributes):
    """A cell that reads of an object of `Mine(Layer)`, and changes of `Mine`, `Layer` or the object."""

    class Layer:
        rate = 2.0

        def factor(self):
            return 1.5

        @staticmethod
        def fixed():
            return 1.5

        @classmethod
        def made(cls):
            return cls.rate

        @property
        def doubled(self):
            return 2 * self.rate

        @eb.cell
        def step(self, x):
            return x * read(self)

    class Mine(Layer):
        pass

    one = Mine()
    vars(one).update(attributes)
    return one.step, [lambda change=change: change(one, Mine, Layer) for change in changes]


@case
def attribute():
    return family(
        lambda self: self.rate,
        lambda one, Mine, Layer: setattr(Mine, "rate", 5.0),
        lambda one, Mine, Layer: setattr(Layer, "rate", 7.0) or delattr(Mine, "rate"),
    )


@case
def method():
    return family(lambda self: self.factor(), lambda one, Mine, Layer: setattr(Mine, "factor", lambda self: 4.0))


@case
def static_method():
    return family(lambda self: self.fixed(), lambda one, Mine, Layer: setattr(Mine, "fixed", staticmethod(lambda: 4.0)))


@case
def class_method():
    return family(lambda self: self.made(), lambda one, Mine, Layer: setattr(Mine, "rate", 4.0))


@case
def a_property():
    return family(
        lambda self: self.doubled,
        lambda one, Mine, Layer: setattr(Mine, "doubled", property(lambda self: 9.0)),
    )


@case
def a_property_over_what_the_object_holds():
    return family(
        lambda self: self.scale,
        lambda one, Mine, Layer: setattr(Mine, "scale", property(lambda self: 9.0)),
        lambda one, Mine, Layer: setattr(Mine, "scale", property(lambda self: 3.0)),
        scale=2.0,
    )


@case
def of_the_class():
    return family(lambda self: type(self).rate, lambda one, Mine, Layer: setattr(Mine, "rate", 5.0), rate=3.0)


@case
def of_the_class_that_the_object_hides():
    return family(lambda self: type(self).rate, lambda one, Mine, Layer: setattr(Layer, "rate", 5.0), rate=3.0)


@case
def of_a_class_around():
    class Layer:
        rate = 2.0

    class Mine(Layer):
        pass

    @eb.cell
    def step(x):
        return x * Mine.rate

    return step, [lambda: setattr(Mine, "rate", 5.0), lambda: setattr(Mine, "rate", 1.0)]


@case
def of_a_metaclass():
    class Meta(type):
        rate = 2.0

    class Sub(Meta):
        pass

    class Mine(metaclass=Sub):
        pass

    @eb.cell
    def step(x):
        return x * Mine.rate

    return step, [
        lambda: setattr(Meta, "rate", 5.0),
        lambda: setattr(Sub, "rate", 6.0),
        lambda: setattr(Mine, "rate", 7.0),
    ]


@case
def super_of_an_attribute():
    class First:
        rate = 2.0

    class Second(First):
        pass

    class Third(Second):
        rate = 4.0

        @eb.cell
        def step(self, x):
            return x * super().rate

    return Third().step, [lambda: setattr(First, "rate", 5.0), lambda: setattr(Second, "rate", 6.0)]


@case
def bases():
    class First:
        rate = 2.0

    class Second:
        rate = 4.0

    class Mine(First):
        @eb.cell
        def step(self, x):
            return x * self.rate

    return Mine().step, [lambda: setattr(Mine, "__bases__", (Second,))]


@case
def of_another_class_in_the_order():
    class Top:
        rate = 2.0

    class Left(Top):
        pass

    class Right(Top):
        pass

    class Mine(Left, Right):
        @eb.cell
        def step(self, x):
            return x * self.rate

    return Mine().step, [lambda: setattr(Right, "rate", 5.0), lambda: setattr(Left, "rate", 6.0)]


@case
def default_of_getattr():
    return family(
        lambda self: getattr(self, "later", 2.0),
        lambda one, Mine, Layer: setattr(Layer, "later", 3.0),
        lambda one, Mine, Layer: setattr(Mine, "later", 4.0),
        lambda one, Mine, Layer: setattr(one, "later", 5.0),
    )


@case
def hasattr_of_a_class():
    return family(
        lambda self: 3.0 if hasattr(self, "later") else 1.0,
        lambda one, Mine, Layer: setattr(Layer, "later", 3.0),
    )


@case
def default_of_a_class():
    return family(
        lambda self: getattr(type(self), "later", 2.0),
        lambda one, Mine, Layer: setattr(Layer, "later", 3.0),
        lambda one, Mine, Layer: setattr(Mine, "later", 4.0),
    )


@case
def an_attribute_in_vain():
    def read(self):
        try:
            return self.later
        except AttributeError:
            return 1.0

    return family(
        read,
        lambda one, Mine, Layer: setattr(Layer, "later", 3.0),
        lambda one, Mine, Layer: setattr(one, "later", 5.0),
    )


@case
def an_attribute_of_an_object_in_vain():
    def read(self):
        try:
            return self.later
        except AttributeError:
            return 1.0

    return family(read, lambda one, Mine, Layer: setattr(one, "later", 5.0))


@case
def an_attribute_in_vain_of_any_error():
    def read(self):
        try:
            return self.later
        except:  # noqa: E722
            return 1.0

    return family(read, lambda one, Mine, Layer: setattr(one, "later", 5.0))


@case
def an_attribute_in_vain_in_a_function_inside():
    def later(self):
        return self.later

    def read(self):
        try:
            return later(self)
        except AttributeError:
            return 1.0

    return family(read, lambda one, Mine, Layer: setattr(one, "later", 5.0))


@case
def an_attribute_before_getattr():
    class Mine:
        def __getattr__(self, name):
            if name == "later":
                return 2.0
            raise AttributeError(name)

        @eb.cell
        def step(self, x):
            return x * self.later

    one = Mine()
    return one.step, [lambda: setattr(one, "later", 5.0)]


@case
def a_slot_in_vain():
    class Mine:
        __slots__ = ("__weakref__", "later")

        @eb.cell
        def step(self, x):
            return x * getattr(self, "later", 2.0)

    one = Mine()
    return one.step, [lambda: setattr(one, "later", 5.0)]


class Config:
    __match_args__ = ("act", "rate")

    def __init__(self, act="tanh", rate=2.0):
        self.act = act
        self.rate = rate


def matched(read, *changes):
    config = Config()

    @eb.cell
    def step(x):
        return x * read(config)

    return step, [lambda change=change: change(config) for change in changes]


@case
def pattern_of_attributes():
    def read(config):
        match config:
            case Config(act="tanh"):
                return 2.0
            case _:
                return 3.0

    return matched(read, lambda config: setattr(config, "act", "relu"))


@case
def pattern_of_positions():
    def read(config):
        match config:
            case Config("tanh", rate):
                return rate
            case _:
                return 3.0

    return matched(read, lambda config: setattr(config, "rate", 5.0), lambda config: setattr(config, "act", "relu"))


class Number(float):
    offset = 1.0


@case
def attribute_of_a_number():
    number = Number(2.0)
    number.scale = 3.0

    @eb.cell
    def step(x):
        return x * number * number.scale + number.offset

    return step, [lambda: setattr(number, "scale", 4.0), lambda: setattr(number, "offset", 5.0)]


@case
def format_of_an_attribute():
    config = Config()

    @eb.cell
    def step(x):
        return x * float("{0.rate}".format(config))  # noqa: UP030, UP032

    return step, [lambda: setattr(config, "rate", 4.0)]


@case
def format_of_a_map():
    config = Config()

    @eb.cell
    def step(x):
        return x * float("{c.rate} ".format_map({"c": config}))

    return step, [lambda: setattr(config, "rate", 4.0)]


@case
def what_is_wrapped():
    def double(x):
        return x * 2

    def triple(x):
        return x * 3

    def outer(x):
        return x

    outer.__wrapped__ = double

    @eb.cell
    def step(x):
        return outer.__wrapped__(x)

    return step, [lambda: setattr(outer, "__wrapped__", triple)]


@case
def a_copy_of_another_class():
    class Mine(Config):
        pass

    config = Mine()

    @eb.cell
    def step(x):
        return x * operator.attrgetter("rate")(config) * getattr(config, "scale", 1.0)

    return step, [lambda: setattr(Mine, "scale", 4.0), lambda: setattr(copy.copy(config).__class__, "scale", 5.0)]


def special(name, read, first, second):
    """A cell that reads by a special method, which a nearer class gets, and which is then replaced."""
    kind = type("Layer", (), {name: lambda self, *_: first})
    mine = type("Mine", (kind,), {})
    one = mine()

    @eb.cell
    def step(x):
        return x * read(one)

    return step, [lambda: setattr(mine, name, lambda self, *_: second)]


SPECIAL = {
    "__len__": (len, 2, 3),
    "__bool__": (lambda one: 2.0 if one else 3.0, True, False),
    "__getitem__": (lambda one: one[0], 2.0, 3.0),
    "__contains__": (lambda one: 2.0 if 1 in one else 3.0, True, False),
    "__float__": (float, 2.0, 3.0),
    "__call__": (lambda one: one(), 2.0, 3.0),
    "__eq__": (lambda one: 2.0 if one == 1 else 3.0, True, False),
    "__neg__": (lambda one: -one, 2.0, 3.0),
}
for name, given in SPECIAL.items():
    CASES[name] = lambda name=name, given=given: special(name, *given)


@case
def a_special_method_of_what_had_none():
    class Mine:
        pass

    one = Mine()

    @eb.cell
    def step(x):
        return x * (2.0 if one else 3.0)

    return step, [lambda: setattr(Mine, "__bool__", lambda self: False)]


@case
def a_named_tuple():
    class Pair(NamedTuple):
        x: float

        def scale(self):
            return self.x

    class Mine(Pair):
        pass

    plain, mine = Pair(2.0), Mine(3.0)

    @eb.cell
    def step(x):
        return x * plain.scale() * mine.scale() * mine.x

    return step, [
        lambda: setattr(Mine, "scale", lambda self: 7.0),
        lambda: setattr(Pair, "scale", lambda self: 4.0),
    ]


@pytest.mark.parametrize("name", CASES)
def test_changes_are_seen(name):
    call, changes = CASES[name]()
    before = value_of(call, True)
    np.testing.assert_allclose(before, value_of(call, False), rtol=1e-6)
    for change in changes:
        change()
        got = value_of(call, True)
        np.testing.assert_allclose(got, value_of(call, False), rtol=1e-6)
        assert np.abs(got - before).max() > 0.01
