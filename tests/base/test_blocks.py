"""`with` blocks of graphs, options and devices that end in any order: each takes itself out, and no other."""

import gc
import traceback
import weakref
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from pathlib import Path

import pytest

import edbatch as eb
from edbatch import devices
from edbatch.base.blocks import Blocks
from edbatch.devices import current_device
from edbatch.graph import options
from edbatch.graph.cell.trace import Trace, traced
from edbatch.graph.opened import graphs
from edbatch.graph.options import Options, current_options
from tests.interrupts import FOREVER, Interrupt

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
    """As a device that several threads enter: one of them is interrupted between two steps of leaving it."""
    blocks = Blocks("test")

    class Entered(list):
        def copy(self):
            copied = super().copy()
            with ThreadPoolExecutor(1) as pool:
                pool.submit(lambda: blocks.enter("other's", self)).result()
            return copied

    entered = Entered()
    own = blocks.enter("own", entered)
    assert blocks.leave_one(entered)
    assert own not in entered
    assert len(entered) == 1
    assert blocks.innermost() is None


def test_blocks_that_follow_each_other_leave_nothing():
    """Each begins before the one before it ends, as where mini-batches are prefetched."""
    blocks, entered = Blocks("test"), []
    before = blocks.enter(0, entered)
    for number in range(1, 100):
        block = blocks.enter(number, entered)
        blocks.leave(before, entered)
        before = block
        assert [one.value for one in blocks] == [number, None]
    blocks.leave(before, entered)
    assert not entered
    assert [one.value for one in blocks] == [None]


def test_a_graph_ends_with_its_last_reference():
    first, second = held(one := eb.Graph()), held(other := eb.Graph())
    kept = [weakref.ref(one), weakref.ref(other)]
    next(first)
    next(second)
    first.close()
    second.close()
    gc.disable()
    try:
        del one, other, first, second
        assert [found() for found in kept] == [None, None]
    finally:
        gc.enable()


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


def opened():
    """What is in force that a block has changed."""
    found = [graphs.innermost(), current_device() is not eb.device("cpu"), current_options() != Options()]
    return [one for one in found if one]


@pytest.mark.cpu
@pytest.mark.filterwarnings("ignore:Exception ignored in. <function Builder.__del__")  # where there is no C extension
@pytest.mark.parametrize("kind", INTERRUPTED)
def test_an_interrupt_leaves_none_open(kind):
    """At any line, but those that only call the next: Python looks for signals where functions begin and calls end."""
    run, places = INTERRUPTED[kind], []

    def known():
        try:
            run()
        except KeyboardInterrupt as error:
            *_, (frame, line), _ = traceback.walk_tb(error.__traceback__)
            places.append((Path(frame.f_code.co_filename).stem, frame.f_code.co_name, line))
            raise

    known()
    counted = Interrupt(FOREVER)
    counted.run(known)
    for line in range(1, counted.lines + 1):
        Interrupt(line).run(known)
        if opened():
            # Nothing runs there, or only what ends the block is called: this cannot be avoided in Python.
            assert places[-1][1] in ("__enter__", "__exit__", "leave_one", "traced"), (line, places[-1])
            assert places[-1][0] != "exclusive"
            for _ in range(3):
                for opener in (graphs, options._blocks, devices._blocks):
                    opener.top.get().value = None
    assert len(places) > counted.lines / 2
