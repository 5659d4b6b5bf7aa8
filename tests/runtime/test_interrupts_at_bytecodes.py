"""An interrupt at any bytecode leaves no block open, of whatever kind, and what comes next is right."""

import ast
import gc
from pathlib import Path

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.recorder import IN_C
from edbatch.testing import poisoned_memory
from tests.interrupts import FOLDER, FOREVER, Interrupt, expect_none_open

pytestmark = [pytest.mark.cpu, pytest.mark.skipif(not IN_C, reason="in Python, a block may stay open")]
MODEL = eb.ParameterCollection(seed=0)
W = MODEL.add_parameters((3, 3), name="W")
MOST, MANY = 60, 1200  # places of a scenario


def blocks():
    with eb.options(training=False), eb.Graph(), eb.device("cpu"):
        return eb.tanh(W @ eb.ones(3)).value()


def generators():
    """Blocks that do not end in the order in which they began."""

    def held(block):
        with block:
            yield

    one, other = held(eb.Graph()), held(eb.Graph())
    try:
        next(one)
        next(other)
        one.close()
        return (W @ eb.ones(3)).value()
    finally:
        one.close()
        other.close()


def a_cell_is_traced():
    @eb.cell
    def f(x):
        return eb.tanh(W @ x)

    with eb.Graph():
        return f(eb.ones(3)).value()


def a_call_is_replayed():
    @eb.replay
    def f(numbers):
        return W @ eb.sum([eb.ones(3) * x for x in numbers])

    with eb.Graph():
        return f((1.0, 2.0)).value()


def vertices():
    @eb.vertex
    def states(v):
        v.scatter(eb.tanh(W @ eb.sum([v.pull(), *v.gather()])))

    with eb.Graph("sufficient"):
        return states(DIAMOND, np.ones((4, 3))).scattered.value()


DIAMOND = eb.InputGraph.of_lists([[(1, 2, 1), (3,), (3,), ()]])


async def program():
    x = eb.ones(3)
    for _ in range(2):
        x = x * float(await eb.sum(W @ x))
    return await x


def programs():
    return np.array(eb.run([program() for _ in range(2)]))


def backward():
    MODEL.zero_grad()
    with eb.Graph("sufficient"):
        loss = eb.sum(eb.tanh(W @ eb.ones(3)))
    loss.backward()
    return W.grad().copy()


def poisoned():
    with poisoned_memory(), eb.Graph():
        return (W @ eb.ones(3)).value()


SCENARIOS = [blocks, generators, a_cell_is_traced, a_call_is_replayed, vertices, programs, backward, poisoned]


def check(scenario, most):
    for _ in range(3):  # what is compiled and planned at first is not, after it
        wanted = scenario()
    counted = Interrupt(FOREVER, bytecodes=True)
    counted.run(scenario)
    places, interrupted = counted.places, 0
    for at in places[:: -(-len(places) // most)]:
        gc.disable()  # what listens to it is Python, and is told of no interrupt
        interrupted += Interrupt(at, bytecodes=True).run(scenario)
        gc.enable()
        expect_none_open()
        np.testing.assert_array_equal(scenario(), wanted)
    assert interrupted > 30


@pytest.mark.filterwarnings("ignore:coroutine 'program' was never awaited:RuntimeWarning")
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_an_interrupt_at_some_bytecodes(scenario):
    check(scenario, MOST)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:coroutine 'program' was never awaited:RuntimeWarning")
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_an_interrupt_at_many_bytecodes(scenario):
    check(scenario, MANY)


# Of what is entered and left in Python: a twin of what is in C, and one in whose block signals wait.
IN_PYTHON = {"OpenContext", "signals_deferred"}


def test_blocks_are_left_by_what_an_interrupt_does_not_undo():
    for path in sorted(Path(FOLDER).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and node.name not in IN_PYTHON:
                for one in node.body:
                    if isinstance(one, ast.FunctionDef) and one.name == "__exit__":
                        assert [ast.unparse(by).split(".")[-1] for by in one.decorator_list] == ["leaving"], node.name
            if isinstance(node, ast.ImportFrom) and node.module == "contextlib":
                assert "contextmanager" not in [one.name for one in node.names], path
