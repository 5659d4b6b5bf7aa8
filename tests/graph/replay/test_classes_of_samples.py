"""What a function reads of the classes of a sample's objects belongs to what it depends on."""

from dataclasses import dataclass
from typing import NamedTuple

import pytest

import edbatch as eb


def classes():
    """Made anew for each test: of each, one whose `weight` the function reads."""

    class Base:
        weight = 1.0

    class Plain(Base):
        def __init__(self):
            self.x = 3.0

        def scaled(self):
            return self.x * self.weight

    class Slots:
        __slots__ = ("x",)
        weight = 1.0
        scaled = Plain.scaled

        def __init__(self):
            self.x = 3.0

    @dataclass(frozen=True)
    class Frozen:
        x: float = 3.0
        scaled = Plain.scaled

    Frozen.weight = 1.0

    class Pair(NamedTuple):
        x: float = 3.0

    class Named(Pair):
        weight = 1.0
        scaled = Plain.scaled

    class Property(Plain):
        def __init__(self):
            self.x = 3.0

        weight = property(lambda self: 1.0)

    return {kind.__name__: kind for kind in (Plain, Slots, Frozen, Named, Property)}


def directly(sample):
    return eb.scalar(sample.x * sample.weight)


def by_method(sample):
    return eb.scalar(sample.scaled())


def in_lists(sample):
    return eb.sum([eb.scalar(one.scaled()) for one in sample["all"]])


WAYS = {directly: lambda sample: sample, by_method: lambda sample: sample, in_lists: lambda sample: {"all": [sample]}}


def change(kind, weight):
    holder = kind.__mro__[1] if kind.__name__ == "Plain" else kind
    holder.weight = property(lambda self: weight) if kind.__name__ == "Property" else weight


def change_inside_a_graph(function, sample, kind):
    with eb.Graph():
        function(sample)
        change(kind, 7.0)
        function(sample)


@pytest.mark.parametrize("kind", classes())
@pytest.mark.parametrize("way", WAYS)
def test_a_change_of_a_class(kind, way):
    kind = classes()[kind]
    sample, function = WAYS[way](kind()), eb.replay(way)
    for weight in (1.0, 1.0, 2.0, 2.0, 5.0):
        change(kind, weight)
        with eb.Graph():
            assert function(sample).value() == 3 * weight
            assert function(WAYS[way](kind())).value() == 3 * weight  # an equal one
    with pytest.raises(eb.EdBatchError, match=r"reads .*weight.* Pass it as an argument"):
        change_inside_a_graph(function, sample, kind)


def test_a_class_that_comes_later():
    kinds = classes()
    first, second = kinds["Plain"], kinds["Slots"]
    samples, function = (first(), second()), eb.replay(by_method)
    for weights in ((1.0, 1.0), (2.0, 1.0), (2.0, 3.0), (1.0, 3.0)):
        for kind, weight in zip((first, second), weights, strict=True):
            change(kind, weight)
        with eb.Graph():
            assert [function(sample).value() for sample in samples] == [3 * weight for weight in weights]


def test_a_method_that_is_replaced():
    kind = classes()["Plain"]
    sample, function = kind(), eb.replay(by_method)
    for add in (0.0, 1.0):
        kind.scaled = lambda self, add=add: self.x + add
        with eb.Graph():
            assert function(sample).value() == 3 + add
