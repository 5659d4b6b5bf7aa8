"""`with` blocks of graphs, options and devices that end in any order: each takes itself out, and no other."""

from concurrent.futures import ThreadPoolExecutor
from itertools import permutations

import pytest

import edbatch as eb
from edbatch.base.context_stack import ContextStack
from edbatch.devices import current_device
from edbatch.graph.cell.trace import Trace, traced
from edbatch.graph.opened import graphs
from edbatch.graph.options import current_options
from edbatch.graph.recorder import IN_C
from tests.interrupts import FOREVER, Interrupt, expect_none_open

KINDS = {
    "graph": (graphs.innermost, lambda: [eb.Graph() for _ in range(3)]),
    "device": (current_device, lambda: [eb.device(f"cuda:{number}") for number in range(3)]),
    "device again": (current_device, lambda: [eb.device("cuda:1"), eb.device("cpu"), eb.device("cuda:1")]),
    "graph again": (graphs.innermost, lambda: [graph := eb.Graph(), eb.Graph(), graph]),
}


def held(block):
    with block:
        while True:
            yield


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_generators_that_end_in_any_order(kind, order):
    now, make = KINDS[kind]
    outside, values = now(), make()
    generators = [held(value) for value in values]
    for generator in generators:
        next(generator)
    going_on = list(values)
    left = [0, 1, 2]
    for number in order:
        assert now() is going_on[-1]
        generators[number].close()
        del going_on[left.index(number)]
        left.remove(number)
    assert now() is outside


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_options_go_with_their_block(order):
    changes = [{"training": False}, {"split": False}, {"training": True, "cells": False}]
    generators = [held(eb.options(**change)) for change in changes]
    for generator in generators:
        next(generator)
    left = [0, 1, 2]
    for number in order:
        together = {name: value for one in left for name, value in changes[one].items()}
        assert current_options() == type(current_options())(**together)
        generators[number].close()
        left.remove(number)
    assert current_options() == type(current_options())()


@pytest.mark.parametrize("kind", KINDS)
def test_ended_by_another_thread(kind):
    now, make = KINDS[kind]
    outside, values = now(), make()
    outer, inner = held(values[0]), held(values[1])
    next(outer)
    next(inner)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(inner.close).result()
        assert now() is values[0]
        with values[1]:
            assert now() is values[1]
        assert now() is values[0]
        pool.submit(outer.close).result()
    assert now() is outside


def test_a_block_that_another_thread_enters_meanwhile_is_not_taken_for_it():
    """As a device that several threads enter."""
    blocks = ContextStack("test")

    class Owner:
        def __init__(self):
            self._entered = []

        @blocks.entering
        def __enter__(self, block):
            return block

        @blocks.leaving
        def __exit__(self, block, *_):
            left.append(block)

    owner, left = Owner(), []
    with owner as own, ThreadPoolExecutor(1) as pool:
        others = pool.submit(owner.__enter__).result()
    assert left == [own]
    assert owner._entered == [others]
    assert blocks.innermost() is None


def with_block(make):
    def inside():
        with make():
            pass

    return inside


INTERRUPTED = {
    "graph": with_block(eb.Graph),
    "options": with_block(lambda: eb.options(training=False)),
    "decorated": eb.options(training=False)(list),
    "device": with_block(lambda: eb.device("cuda:1")),
    "trace": lambda: traced(Trace("a cell", "float32"), list),
}


@pytest.mark.cpu
@pytest.mark.skipif(not IN_C, reason="in Python, a block may stay open")
@pytest.mark.parametrize("kind", INTERRUPTED)
def test_an_interrupt_leaves_none_open(kind):
    """At any bytecode: Python looks for signals where functions begin, and calls end."""
    run = INTERRUPTED[kind]
    run()
    counted = Interrupt(FOREVER, bytecodes=True)
    counted.run(run)
    for at in range(1, counted.passed + 1):
        assert Interrupt(at, bytecodes=True).run(run)
        expect_none_open()
