"""Cells are functions of every kind, called in every way that Python allows; or say what is wrong."""

import functools
import gc
import weakref
from typing import NamedTuple

import numpy as np
import pytest

import edbatch as eb


def both(call):
    """What a call gives with cells, which must be what it gives without, and the number of its nodes with cells."""
    found = []
    for cells in (True, True, False):
        with eb.options(cells=cells), eb.Graph(policy="depth") as graph:
            found.append(call(eb.input([0.5, -1.0]), eb.input([2.0, 3.0])).value())
        if cells:
            nodes = graph.report().nodes
    np.testing.assert_allclose(found[0], found[2], rtol=1e-6)
    np.testing.assert_allclose(found[1], found[2], rtol=1e-6)
    return found[0], nodes


class Kinds:
    factor = 3.0

    @eb.cell
    def this(this, x):
        return x * this.factor + 1

    @eb.cell
    @classmethod
    def inside(cls, x):
        return x * cls.factor + 1

    @classmethod
    @eb.cell
    def outside(cls, x):
        return x * cls.factor + 1

    @eb.cell
    @staticmethod
    def static_inside(x, y):
        return x * y + 1

    @staticmethod
    @eb.cell
    def static_outside(self, y):  # a name that means nothing here
        return self * y + 1


class Other(Kinds):
    factor = 5.0


class Called:
    factor = 3.0

    def __call__(self, x):
        return x * self.factor + 1


def test_whatever_the_owner_is_called():
    for one, factor in ((Kinds(), 3.0), (Other(), 5.0)):
        value, nodes = both(lambda x, y, one=one: one.this(x))
        assert (value[0], nodes) == (0.5 * factor + 1, 1)
    assert "this" in str(Kinds.this.layout())


@pytest.mark.parametrize("name", ["inside", "outside"])
def test_class_methods(name):
    for kind in (Kinds, Other, Kinds):  # none has another's traces
        value, nodes = both(lambda x, y, kind=kind: getattr(kind, name)(x))
        assert (value[0], nodes) == (0.5 * kind.factor + 1, 1)
        assert both(lambda x, y, kind=kind: getattr(kind(), name)(x))[0][0] == 0.5 * kind.factor + 1
    Kinds.factor = 7.0
    try:
        assert both(lambda x, y: getattr(Kinds, name)(x))[0][0] == 4.5
    finally:
        Kinds.factor = 3.0


@pytest.mark.parametrize("name", ["static_inside", "static_outside"])
def test_static_methods(name):
    for one in (Kinds, Kinds()):
        assert both(lambda x, y, one=one: getattr(one, name)(x, y))[1] == 1


def test_slots():
    class Slotted:
        __slots__ = ("__weakref__", "factor")

        @eb.cell
        def step(self, x):
            return x * self.factor + 1

    one, two = Slotted(), Slotted()
    one.factor, two.factor = 2.0, 3.0
    for owner in (one, two, one):
        assert both(lambda x, y, owner=owner: owner.step(x))[0][0] == 0.5 * owner.factor + 1
    one.factor = 4.0
    assert both(lambda x, y, owner=one: owner.step(x))[0][0] == 3
    gone = weakref.ref(one)
    del one, owner
    gc.collect()
    assert gone() is None

    class Bare:
        __slots__ = ()

        @eb.cell
        def step(self, x):
            return x + 1

    class Pair(NamedTuple):
        x: float

        step = eb.cell(lambda self, x: x * self.x)

    for owner in (Bare(), Pair(1.0)):
        with eb.Graph(), pytest.raises(eb.EdBatchError, match=r"step.*|lambda.*with a __dict__.*'__weakref__' among"):
            owner.step(eb.ones(1))


def test_functions_without_names():
    assert both(eb.cell(lambda x, y: x * y + 1))[1] == 1
    assert both(eb.cell(functools.partial(lambda x, y, *, by: x * by + y, by=2.0)))[1] == 1
    called = Called()
    step = eb.cell(called)
    assert both(lambda x, y: step(x))[0][0] == 2.5
    called.factor = 4.0
    assert both(lambda x, y: step(x))[0][0] == 3
    bound = eb.cell(called.__call__)
    assert both(lambda x, y: bound(x))[0][0] == 3
    for wrong in (3, Called, property(lambda self: self)):
        with pytest.raises(eb.EdBatchError, match="cell: expected a function, got"):
            eb.cell(wrong)


def test_keywords():
    @eb.cell
    def step(x, h, *, extra=None, scale=2.0):
        return x * scale + h * h + (0 if extra is None else extra * 3)

    calls = [
        lambda x, y: step(x, h=y),
        lambda x, y: step(h=x, x=y),
        lambda x, y: step(x, y, extra=x),
        lambda x, y: step(x, y, extra=y),
        lambda x, y: step(x, y, scale=3.0),
        lambda x, y: step(x, h=y, extra=x, scale=3.0),
        lambda x, y: step(x, y, extra=2.0),
    ]
    assert [both(call)[1] for call in calls] == [1] * len(calls)
    assert len({str(both(call)[0]) for call in calls}) == len(calls)


@eb.cell
def picked(x, n: int = 0):
    return eb.pick(x, n)


@eb.cell
def picked_of_product(x, y=2.0, n: int = 0):
    return eb.pick(x * y, n)


@pytest.mark.parametrize("integers", [1, np.array([1, 2])])
@pytest.mark.parametrize("several", [False, True])
def test_integers_that_have_a_default(several, integers):
    """Of single expressions and of arrays, by place and by name, behind what is left out and what is a number."""
    rows = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    with eb.Graph(dtype="float64"):
        x = eb.array(rows) if several else eb.input(rows[0])
        of = rows if several else np.array([rows[0]] * 2)
        expected = of[range(2), integers] if several or np.ndim(integers) else of[0, integers]
        found = {
            (1.0, "place"): picked(x, integers),
            (1.0, "name"): picked(x, n=integers),
            (2.0, "behind a default"): picked_of_product(x, n=integers),
            (3.0, "behind a number"): picked_of_product(x, 3.0, integers),
            (4.0, "behind an expression"): picked_of_product(x, eb.scalar(4.0), integers),
            (5.0, "beside a name"): picked_of_product(x, y=5.0, n=integers),
        }
        for (factor, _), y in found.items():
            np.testing.assert_allclose(y.value(), factor * expected)
