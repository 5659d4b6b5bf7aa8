"""Gradients of some rows of a parameter: right, and without an array of the parameter's size for each node."""

import tracemalloc

import numpy as np
import pytest

import edbatch as eb
from tests.arrays import on_host


@pytest.mark.cpu
@pytest.mark.parametrize(
    "read",
    ["pick", "pick in a cell", "a row in a cell", "pick of its value", "pick of a slice", "pick of what is computed"],
)
def test_no_node_makes_an_array_of_the_parameters_size(read):
    model = eb.ParameterCollection(seed=0)
    P = model.add_parameters((4096, 64))
    call = {
        "pick": lambda x, i: eb.pick(P, i) * x,
        "pick in a cell": eb.cell(lambda x, i: eb.pick(P, i) * x),
        "a row in a cell": eb.cell(lambda x, i: P[3] * x + P[7:9][1]),
        "pick of its value": lambda x, i: eb.pick(eb.parameter(P), i) * x,
        "pick of a slice": lambda x, i: eb.pick(P[96:], i) * x,
        "pick of what is computed": lambda x, i: eb.pick(computed, i) * x,
    }[read]
    with eb.Graph(policy="sufficient"):
        computed = eb.tanh(P)
        loss = eb.sum([eb.sum(call(eb.ones(64), i)) for i in range(200)])
    loss.value()
    tracemalloc.start()
    loss.backward()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50 * 4096 * 64 * 4  # compiling takes some


@pytest.mark.parametrize("shape", [(301, 40), (20_000,), (30, 7, 50), (3, 5000)])
def test_picks_from_large_values(shape):
    random = np.random.default_rng(0)
    data = random.normal(size=shape)
    rows = [0, -1, shape[0] - 2, *random.integers(-shape[0], shape[0], 20).tolist(), 1, 1]
    weights = random.normal(size=(len(rows), *shape[1:]))
    model = eb.ParameterCollection(dtype="float64")
    P = model.add_parameters(shape, name="P", init=data)
    with eb.Graph(policy="sufficient", dtype="float64") as graph:
        x = eb.input(data)
        picks = [[eb.pick(value, np.int64(i)) for i in rows] for value in (x, eb.parameter(P))]
        loss = eb.sum([eb.sum(y * w) for of in picks for y, w in zip(of, weights, strict=True)])
        loss.backward()
    want = np.zeros(shape)
    np.add.at(want, [i % shape[0] for i in rows], weights)
    for of in picks:
        for y, i, w in zip(of, rows, weights, strict=True):
            np.testing.assert_array_equal(y.value(), data[i])
            np.testing.assert_array_equal(y.gradient(), w)  # its own, without those of other picks of the row
    np.testing.assert_allclose(x.gradient(), want)
    np.testing.assert_allclose(on_host(P.grad()), want)
    assert graph.report().batches <= 5  # all picks are one of them
    with eb.Graph(), pytest.raises(eb.EdBatchError, match=f"index {shape[0]} is out of range for {shape[0]} entries"):
        eb.pick(eb.input(data), shape[0])
