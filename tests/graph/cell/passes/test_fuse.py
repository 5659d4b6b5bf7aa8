"""Runs reach no more values than a kernel has places for, and what is computed in several runs is the same."""

from dataclasses import replace

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.cell.passes import fuse
from edbatch.graph.cell.passes.fuse import MOST_PLACES, Run
from edbatch.models.lstm import LSTM
from edbatch.runtime import type_table
from tests.arrays import on_host
from tests.graph.bodies import trace


def places(body, run):
    return len(fuse.reads(body, run)[0]) + len(run.stores)


def total(*xs):
    found = eb.tanh(xs[0])
    for x in xs[1:]:
        found = found + eb.tanh(x)
    return found


def test_a_run_of_few_operands_is_one():
    body = trace(total, *[(3,)] * (MOST_PLACES - 1), dtype="float32")
    (run,) = fuse.fuse(body)
    assert places(body, run) == MOST_PLACES


@pytest.mark.parametrize("count", [MOST_PLACES, 300])
def test_a_run_of_many_operands_becomes_several(count):
    body = trace(total, *[(3,)] * count, dtype="float32")
    runs = fuse.fuse(body)
    assert len(runs) > 1
    assert all(isinstance(run, Run) and places(body, run) <= MOST_PLACES for run in runs)
    assert [node for run in runs for node in run.nodes] == list(range(count, len(body.nodes)))


def test_many_runs_take_as_many_steps_as_few():
    """The body is gone through a fixed number of times, not once for every run."""

    class Counted(tuple):
        times = 0

        def __iter__(self):
            Counted.times += 1
            return super().__iter__()

    def steps(x, W):
        for _ in range(40):
            x = eb.tanh(W @ x)
        return x

    body = trace(steps, (3,), (3, 3), dtype="float32")
    runs = fuse.fuse(replace(body, nodes=Counted(body.nodes)))
    assert [run.stores for run in runs if isinstance(run, Run)] == [(number,) for number in range(3, 82, 2)]
    assert 1 <= Counted.times <= 4


def test_a_node_of_many_operands_stays_whole(monkeypatch):
    monkeypatch.setattr(fuse, "MOST_PLACES", 2)
    body = trace(lambda x, y: x * y, (3,), (3,), dtype="float32")
    (run,) = fuse.fuse(body)
    assert places(body, run) == 3


def values_and_gradients():
    model = eb.ParameterCollection(seed=0)
    cell = LSTM(model, 3, 4)
    random = np.random.default_rng(0)
    with eb.Graph(policy="sufficient"):
        state = cell.initial_state().add_input(eb.input(random.normal(size=3))).add_input(eb.ones(3))
        loss = eb.sum(eb.square(state.output()))
        loss.backward()
    return [loss.value(), *(on_host(parameter.grad()) for parameter in model)]


def test_several_runs_compute_the_same(monkeypatch):
    whole = values_and_gradients()
    monkeypatch.setattr(fuse, "MOST_PLACES", 4)
    monkeypatch.setattr(type_table, "_shared", {})
    for value, want in zip(values_and_gradients(), whole, strict=True):
        np.testing.assert_allclose(value, want, rtol=1e-6, atol=1e-7)
