"""Models come and go: what names parameters that are gone is given back, and disturbs nobody who is there."""

import gc
import os
import sys
from weakref import ref

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph import node_type
from edbatch.runtime import type_table


class Net:
    def __init__(self, scale=1.0):
        self.model = eb.ParameterCollection(seed=0)
        self.W, self.U = (self.model.add_parameters((3, 3), name=name) for name in "WU")
        self.b = self.model.add_parameters((3,), name="b", init=0.5 * scale)
        self.table = self.model.add_lookup_parameters((5, 3), name="table")

    @eb.cell
    def step(self, h, word: int):
        return eb.tanh(self.W @ h + self.U @ h + self.b + eb.lookup(self.table, word))

    def loss(self):
        with eb.Graph(policy="sufficient"):
            h = self.step(self.step(eb.ones(3), 1), 4)
            return eb.sum(eb.affine(self.U, h, self.b) * self.b + self.W @ eb.lookup(self.table, 2))

    def expected(self):
        W, U, b, table = (x.value().astype(float) for x in (self.W, self.U, self.b, self.table))
        h = np.ones(3)
        for word in (1, 4):
            h = np.tanh((W + U) @ h + b + table[word])
        return ((U @ h + b) * b + W @ table[2]).sum()


def train():
    net = Net()
    trainer = eb.SGD(net.model, lr=0.1)
    loss = net.loss()
    loss.backward()
    trainer.update()
    return loss


def kept():
    gc.collect()
    train()  # what is gone is taken out when new types come
    return len(node_type.TYPES), len(node_type._interned)


def test_types_of_models_that_are_gone_are_given_back():
    before = kept()
    for _ in range(10):
        train()
    assert kept() == before


@pytest.mark.parametrize("recompute", [False, True])
def test_memory_of_a_model_that_is_gone_is_given_back_at_once(recompute):
    """Programs that read it are compiled for as long as their types are there, but they hold none of it."""
    net = Net()
    with eb.options(recompute=recompute):
        net.loss().backward()
    held = [ref(parameter.array) for parameter in (net.W, net.U, net.b, net.table)]
    held += [ref(net.W.stack.array)]
    del net
    gc.collect()
    assert [array() for array in held] == [None] * 5


def test_nothing_of_ours_that_is_python_runs_when_a_model_goes():
    """An interrupt there would be lost: Python only prints what a callback of a weak reference raises."""
    net = Net()
    assert np.isfinite(net.loss().value())
    gc.collect()
    called = []
    sys.setprofile(lambda frame, event, _: called.append(frame.f_code) if event == "call" else None)
    try:
        del net
        gc.collect()
    finally:
        sys.setprofile(None)
    assert not [code for code in called if f"{os.sep}edbatch{os.sep}" in code.co_filename]


def test_graphs_that_ran_keep_their_values(monkeypatch):
    monkeypatch.setattr(type_table, "MAX_GONE", 5)
    net = Net()
    with eb.Graph(policy="sufficient"):
        x = eb.input([1.0, 2.0, 3.0]) * 2
        h = net.step(x, 1)
        loss = eb.sum(h)
    loss.backward()
    value, gradient = h.value(), h.gradient()
    del net
    for _ in range(3):
        kept()
    np.testing.assert_array_equal(h.value(), value)
    np.testing.assert_array_equal(h.gradient(), gradient)
    assert "step" in repr(h)
    with pytest.raises(eb.EdBatchError, match=r"was deleted, and .* to go back through it; keep its model alive"):
        loss.backward()


def test_graphs_that_did_not_run_say_so():
    net = Net()
    loss = net.loss()
    del net
    kept()
    kept()
    with pytest.raises(eb.EdBatchError, match=r"was deleted, and a graph has still to run with it.*; keep its model"):
        loss.value()


def test_a_cell_may_be_gone_before_its_graph_runs():
    def recorded():
        @eb.cell
        def twice(x):
            return eb.tanh(x) * 2

        with eb.Graph(policy="sufficient"):
            return twice(eb.ones(2))

    y = recorded()
    kept()
    np.testing.assert_allclose(y.value(), 2 * np.tanh(np.ones(2)), rtol=1e-6)
