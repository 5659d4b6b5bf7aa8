"""Gradients of some rows of a parameter: right, and without an array of the parameter's size for each node."""

import tracemalloc

import numpy as np
import pytest

import edbatch as eb
from tests.arrays import on_host
from tests.gradients import check_parameters

ROWS = (3, 0, 3, -1, 2)


@pytest.fixture
def model():
    made = eb.ParameterCollection(seed=0, dtype="float64")
    for name, shape in {"P": (5, 4), "v": 5, "Q": (2, 4), "c": (5, 2, 2)}.items():
        made.add_parameters(shape, name=name, init=np.random.default_rng(len(name)).normal(size=shape))
    made.add_lookup_parameters((5, 4), name="T")
    return made


READS = {
    "pick": lambda m, i: eb.pick(m["P"], i),
    "pick of a vector": lambda m, i: eb.pick(m["v"], i) * eb.ones(4),
    "pick of matrices": lambda m, i: eb.reshape(eb.pick(m["c"], i), 4),
    "pick of a table": lambda m, i: eb.pick(m["T"], i),
    "pick of an expression": lambda m, i: eb.pick(eb.parameter(m["P"]), i) + eb.pick(eb.parameter(m["P"]), 1),
    "rows": lambda m, i: m["P"][1] * eb.pick(m["P"], i) + m["P"][3],
    "a slice": lambda m, i: eb.sum(m["P"][1:3], 0) + m["P"][2, 1] + m["P"][::2, 1:3].T[1, 2],
    "all and a row": lambda m, i: m["P"][2] * (eb.parameter(m["P"]).T @ m["v"]) + eb.pick(m["P"], i),
    "a part of a stack": lambda m, i: eb.concatenate([m["P"] @ eb.pick(m["P"], i), m["Q"] @ eb.pick(m["P"], i)])[1:5],
}


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("cells", [True, False])
def test_gradients_of_rows(model, read, cells):
    def function(x, i: int):
        return eb.sum(eb.exp(x * READS[read](model, i)))

    call = eb.cell(function) if cells else function

    def loss():
        with eb.Graph(policy="sufficient", dtype="float64"):
            return eb.sum([call(eb.input(np.linspace(0.1, 0.4, 4) * (at + 1)), i) for at, i in enumerate(ROWS)])

    loss().backward()
    check_parameters(model, lambda: loss().value(), rtol=1e-5, atol=1e-7)


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
