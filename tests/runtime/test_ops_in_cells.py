"""Whatever op a cell holds, and whatever its operands are: its values are those of the oracle."""

import numpy as np
import pytest

import edbatch as eb
from tests.graph.nodes import added, shapes_of
from tests.graph.test_ops import CASES
from tests.oracle import ORACLE

IN_CELLS = [case for case in CASES if case.values[0].name != "lookup"]


@pytest.mark.filterwarnings("ignore:backward. no parameter got a gradient")
@pytest.mark.parametrize("how", ["values", "parameters", "views"])
@pytest.mark.parametrize(("op", "sample"), IN_CELLS)
def test_every_op_in_a_cell(op, sample, how):
    random = np.random.default_rng(0)
    low, high = max(sample.low, 0.1), min(sample.high, 0.9)
    given = [random.uniform(low, high, shape).astype(np.float32) for shape in shapes_of(op, sample)]
    integers = [int(random.integers(bound)) for bound in sample.payload]
    model = eb.ParameterCollection()
    fixed = [model.add_parameters(x.shape, init=x) for x in given]

    @eb.cell
    def cell(*xs):
        operands = list(xs)
        if how == "views":
            operands = [eb.flip(eb.tanh(eb.flip(x, 0)), 0) if x.shape else eb.tanh(x) for x in xs]
        elif how == "parameters" and not op.variadic and len(xs) > 1:
            operands[1] = fixed[1]
        y = added(op, tuple(sample.attributes.items()), operands, integers)
        return eb.tanh(y), y

    with eb.Graph(policy="none"):
        pairs = [cell(*map(eb.input, given)) for _ in range(2)]
        eb.sum([eb.sum(x) for pair in pairs for x in pair]).backward()
        found = eb.forward([y for _, y in pairs])
    want = ORACLE[op.name](*(np.tanh(x) if how == "views" else x for x in given), *integers, **sample.attributes)
    for value in found:
        np.testing.assert_allclose(value, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("cell", [
    lambda W, x: eb.parameter(W) @ x,
    lambda W, x: eb.parameter(W).T @ x,
    lambda W, x: W @ W.T @ x,
    lambda W, x: eb.affine(W, eb.stack([x, x], axis=1), eb.parameter(W)[:, :2]),
    lambda W, x: eb.reshape(eb.parameter(W), (9,))[::2],
    lambda W, x: eb.concatenate([W, eb.stack([x, x, x])], axis=1).T,
])  # fmt: skip
def test_parameters_that_lie_in_any_way(cell):
    model = eb.ParameterCollection(seed=1)
    W = model.add_parameters((3, 3))
    results = []
    for options in ({}, {"compile": "plain"}, {"cells": False}):
        model.zero_grad()
        with eb.options(**options), eb.Graph(policy="none"):
            x = eb.input([1.0, -2.0, 0.5])
            y = eb.cell(lambda x: cell(W, x))(x)
            eb.sum(eb.square(y)).backward()
            results.append([y.value(), x.gradient(), W.grad()])
    for other in results[1:]:
        for value, want in zip(results[0], other, strict=True):
            np.testing.assert_allclose(value, want, rtol=1e-5, atol=1e-6)
