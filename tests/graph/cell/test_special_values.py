"""Infinite numbers and NaN: a cell has the values and gradients of the same ops outside of one."""

import itertools

import numpy as np
import pytest

import edbatch as eb

FUNCTIONS = {
    "sum": eb.sum,
    "mean": eb.mean,
    "max": eb.max,
    "min": eb.min,
    "logsumexp": eb.logsumexp,
    "softmax": lambda xs: eb.sum([y * k for k, y in enumerate(eb.softmax(xs))]),
    "weighted_sum": lambda xs: eb.weighted_sum(xs, xs),
    "logsumexp of a vector": lambda xs: eb.logsumexp(eb.stack(xs)),
    "softmax of a vector": lambda xs: eb.softmax(eb.stack(xs))[0],
    "norm": lambda xs: eb.norm(eb.stack(xs)),
    "std": lambda xs: eb.std(eb.stack(xs)),
    "cross_entropy": lambda xs: eb.cross_entropy(eb.stack(xs), 1),
    "power": lambda xs: xs[0] ** xs[1] / xs[2],
    "gelu": lambda xs: eb.gelu(xs[0]) * eb.softplus(xs[1]) + eb.log(xs[2]),
    "where": lambda xs: eb.where(xs[0] > xs[1], eb.sqrt(xs[2]), eb.clip(xs[0], -1, 1)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values(name):
    function = FUNCTIONS[name]
    cell = eb.cell(lambda a, b, c: function([a, b, c]))
    found = []
    for call in (lambda *xs: function(list(xs)), cell):
        with eb.Graph():
            rows = [
                list(map(eb.scalar, row)) for row in itertools.product([np.inf, -np.inf, np.nan, 0, 1, -3], repeat=3)
            ]
            results = [call(*row) for row in rows]
            total = eb.sum(results)
        values = eb.forward(results)
        total.backward()
        found.append((values, [[x.gradient() for x in row] for row in rows]))
    for of_ops, of_cell in zip(*found, strict=True):
        np.testing.assert_allclose(of_cell, of_ops, rtol=1e-5, atol=1e-6)
