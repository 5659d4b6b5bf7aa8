"""What is given to a cell by keyword: a cell keeps none of it, and never takes one object for another."""

import functools
import gc
import weakref
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

import edbatch as eb


class Plain:
    def __init__(self, W):
        self.W = W

    def apply(self, x):
        return self.W @ x


class Slotted:
    __slots__ = ("W", "__weakref__")

    def __init__(self, W):
        self.W = W


class Named(NamedTuple):
    W: Any


@dataclass(frozen=True)
class Frozen:
    W: Any


class Equal(Plain):
    def __eq__(self, other):
        return isinstance(other, Equal) and self.W is other.W

    def __hash__(self):
        return id(self.W)


class Nested:
    def __init__(self, W):
        self.sub = Plain(W)
        self.parts = [Plain(W)]
        self.table = {"W": W}


def product(layer, x):
    return layer.W @ x


def of_items(layer, x):
    return sum([W @ x for _, W in layer.table.items()], 0.0)


def of_a_list(layer, x):
    parts = layer.parts
    return parts[0].W @ x


def of_a_tuple(layer, x):
    return layer[0] @ x


def call_it(layer, x):
    return layer(x)


def closure(W):
    return lambda x: W @ x


def with_default(W):
    return lambda x, W=W: W @ x


PLAIN = Plain(eb.ParameterCollection().add_parameters((2, 2)))

# What is made of a parameter, and how a cell uses it.
GIVEN = {
    "an object": (Plain, product),
    "an object with slots": (Slotted, product),
    "a frozen data class": (Frozen, product),
    "an object equal to others": (Equal, product),
    "a named tuple": (Named, product),
    "a tuple": (lambda W: (W, 1), of_a_tuple),
    "a tuple of objects": (lambda W: (Plain(W), "a"), lambda layer, x: product(layer[0], x)),
    "a set": (lambda W: frozenset([Plain(W)]), lambda layer, x: product(next(iter(layer)), x)),
    "an object's part": (Nested, lambda layer, x: product(layer.sub, x)),
    "items": (Nested, of_items),
    "a list": (Nested, of_a_list),
    "a function": (closure, call_it),
    "a function with a default": (with_default, call_it),
    "a method": (lambda W: Plain(W).apply, call_it),
    "a partial": (lambda W: functools.partial(product, Plain(W)), call_it),
}


class Owner:
    @eb.cell
    def step(self, x, *, layer, use):
        return use(layer, x)


@eb.cell
def step(x, *, layer, use):
    return use(layer, x)


@pytest.mark.parametrize("name", GIVEN)
def test_what_is_given_is_let_go(name):
    make, use = GIVEN[name]
    call = Owner().step if len(name) % 2 else step
    held = []
    for number in range(3):
        W = eb.ParameterCollection().add_parameters((2, 2), init=float(number))
        layer = make(W)
        held.append(weakref.ref(W))
        for _ in range(2):
            with eb.Graph(policy="sufficient"):
                assert call(eb.ones(2), layer=layer, use=use).value()[0] == 2 * number
        del W, layer
        gc.collect()
    assert [one() for one in held] == [None] * 3
