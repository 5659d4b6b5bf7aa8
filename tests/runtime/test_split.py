"""Cells split around recurrences give the numbers of the whole cells, and run in fewer, larger batches."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.models import (
    GRU,
    LSTM,
    Bidirectional,
    SimpleRNN,
    Stacked,
)
from tests.arrays import on_host

IN, DIM, OUT = 3, 4, 5
POLICIES = ["none", "sufficient"]
LENGTHS = (6, 1, 3, 6, 2)


def inputs(seed=0, lengths=LENGTHS):
    random = np.random.default_rng(seed)
    return [[eb.input(random.normal(size=IN)) for _ in range(length)] for length in lengths]


def run(build, policy="sufficient", **options):
    """What `build()` returns, computed, and its graph."""
    with eb.options(**options), eb.Graph(policy=policy, dtype="float64") as graph:
        return eb.forward(build()), graph


def check(build, policy="sufficient"):
    """The split graph of `build()`, whose values are those of whole cells and of no cells."""
    got, graph = run(build, policy)
    for options in ({"split": False}, {"cells": False}):
        for value, want in zip(got, run(build, **options)[0], strict=True):
            np.testing.assert_allclose(value, want, rtol=1e-10, atol=1e-12)
    typed = graph.typed_graph()
    users = np.repeat(np.arange(len(typed)), np.diff(typed.indptr))
    assert (typed.operands < users).all()
    return graph


def names(graph):
    return [name.split("([")[0].split("()->")[0] for name in graph.typed_graph().names]


class Cell:
    """Steps of several kinds."""

    def __init__(self, dtype="float64", seed=1):
        model = self.model = eb.ParameterCollection(seed=seed, dtype=dtype)
        self.W = model.add_parameters((DIM, IN), name="W")
        self.V = model.add_parameters((DIM, DIM), name="V")
        self.U = model.add_parameters((DIM, DIM), name="U")
        self.b = model.add_parameters((DIM,), name="b", init="uniform")
        self.out = model.add_parameters((OUT, DIM), name="out")
        self.b_out = model.add_parameters((OUT,), name="b_out", init="uniform")

    @eb.cell
    def read_out(self, x, h):
        """A late part that needs the input, too."""
        h = eb.tanh(self.W @ x + self.U @ h + self.b)
        return h, eb.softmax(self.out @ h + self.b_out), x

    @eb.cell
    def attend(self, keys, x, h, *, scale=1.0):
        """An eager matrix, in a product and with the state; products of what is eager with one another."""
        near = eb.softmax(keys @ (self.U @ h))
        gate = eb.sigmoid(self.V @ eb.tanh(self.W @ x))
        return eb.tanh(near @ keys + (self.U @ (keys.T @ eb.ones(2))) * gate * h * scale + x[1])


@pytest.mark.parametrize("layer", [LSTM, GRU, SimpleRNN])
@pytest.mark.parametrize("policy", POLICIES)
def test_layers(layer, policy):
    made = layer(eb.ParameterCollection(seed=2, dtype="float64"), IN, DIM)
    graph = check(lambda: [y for xs in inputs() for y in made.initial_state().transduce(xs)], policy)
    state = {1: "(h)", 2: "(h, c)"}[layer.states]
    assert names(graph) == [f"{layer.__name__}.step (eager x)", f"{layer.__name__}.step {state}"]
    report = graph.report()
    assert report.nodes == 2 * sum(LENGTHS)
    assert report.lower_bound == 1 + max(LENGTHS)
    if policy == "sufficient":
        assert report.batches == report.lower_bound
        assert report.gathered == 0


def test_layers_on_top_of_one_another_project_in_one_batch_each():
    model = eb.ParameterCollection(seed=2, dtype="float64")
    low = Bidirectional(LSTM(model, IN, DIM, name="a"), LSTM(model, IN, DIM, name="b"))
    high = Bidirectional(GRU(model, 2 * DIM, DIM, name="c"), LSTM(model, 2 * DIM, DIM, name="d"))
    graph = check(lambda: [y for xs in inputs() for y in high.transduce(low.transduce(xs))])
    # Per layer and direction a batch of projections, then the steps; per layer one of concatenations.
    assert graph.report().batches == graph.report().lower_bound == 4 * (1 + max(LENGTHS)) + 2
    stacked = Stacked([LSTM(model, IN, DIM, name="e"), GRU(model, DIM, DIM, name="f")])
    graph = check(lambda: [y for xs in inputs() for y in stacked.initial_state().transduce(xs)])
    assert graph.report().batches == 2 * (1 + max(LENGTHS))


def chain_of_read_outs(cell, lengths=LENGTHS):
    out = []
    for xs in inputs(lengths=lengths):
        h = eb.zeros(DIM)
        for x in xs:
            h, p, same = cell.read_out(x, h)
            out += [h[1:3], p[::2], same]
        out += [h + 1]
    return out


@pytest.mark.parametrize("policy", POLICIES)
def test_what_the_recurrence_does_not_need_is_late(policy):
    cell = Cell()
    graph = check(lambda: chain_of_read_outs(cell), policy)
    assert names(graph) == ["Cell.read_out (eager x)", "Cell.read_out (h)", "Cell.read_out (lazy x)", "add"]
    if policy == "sufficient":
        assert graph.report().batches == 1 + max(LENGTHS) + 1 + 1
        assert graph.report().batches == graph.report().lower_bound


@pytest.mark.parametrize("policy", POLICIES)
def test_what_is_eager_is_used_in_many_ways(policy):
    cell = Cell()

    def build():
        out, random = [], np.random.default_rng(7)
        for xs in inputs():
            keys = eb.input(random.normal(size=(2, DIM)))
            h = eb.ones(DIM)
            for x in xs:
                h = cell.attend(keys, x, h, scale=0.5)
                out.append(h)
        return out

    graph = check(build, policy)
    assert names(graph) == ["Cell.attend scale=0.5 (eager keys, x)", "Cell.attend scale=0.5 (keys, x, h)"]


@pytest.mark.parametrize(("policy", "every"), [("sufficient", 1), ("none", 3), (None, 7)])
def test_graphs_grow_after_values_were_read(policy, every):
    cell, lstm = Cell(), LSTM(eb.ParameterCollection(seed=3, dtype="float64"), IN, DIM)

    def build(graph=None):
        out = []
        h, state = eb.zeros(DIM), lstm.initial_state()
        for number, x in enumerate(inputs(lengths=(12,))[0]):
            h, p, _ = cell.read_out(x, h)
            state = state.add_input(x)
            out += [h, p, *state.vectors]
            if graph is not None and number % every == 0:
                nodes = len(graph.typed_graph())  # looking changes nothing
                h.value()
                assert len(graph.typed_graph()) == nodes
        return out

    with eb.Graph(policy=policy, dtype="float64") as graph:
        got = eb.forward(build(graph))
    want, _ = run(build, cells=False)
    np.testing.assert_allclose(np.concatenate(got), np.concatenate(want), rtol=1e-10, atol=1e-12)
    if every == 1:  # one step at a time: there is nothing to gain from parts
        assert graph.report().nodes == 2 * 12
    got, split = run(build)
    assert split.report().nodes == (2 + 3) * 12
    assert len(split.typed_graph()) == split.report().nodes


def test_more_types_than_one_pass_tells_apart():
    model = eb.ParameterCollection(seed=0, dtype="float64")
    rnns = [SimpleRNN(model, IN, DIM, name=f"rnn{k}") for k in range(70)]
    graph = check(lambda: [rnn.initial_state().transduce(inputs(lengths=(2,))[0])[-1] for rnn in rnns])
    assert graph.report().types == 140
    assert graph.report().batches == 70 * (1 + 2)


@pytest.mark.parametrize("split", [True, False])
def test_the_gradient_of_a_result_that_depends_on_no_argument(split):
    """It is read by the next call, and a late part returns it, too."""
    model = eb.ParameterCollection(seed=0, dtype="float64")
    W, b = model.add_parameters((DIM, DIM)), model.add_parameters(DIM)
    cell = eb.cell(lambda h, A: (b * 2.0, eb.affine(W, eb.ones(DIM), A @ h)))
    A, seed = np.random.default_rng(0).normal(size=(DIM, DIM)), np.arange(1.0, DIM + 1)
    with eb.options(split=split), eb.Graph(policy="none", dtype="float64"):
        matrix = eb.input(A)
        first, _ = cell(eb.zeros(DIM), matrix)
        _, second = cell(first, matrix)
    second.backward(seed)
    np.testing.assert_allclose(on_host(first.gradient()), A.T @ seed, rtol=1e-12)
    np.testing.assert_allclose(on_host(b.grad()), 2 * A.T @ seed, rtol=1e-12)
