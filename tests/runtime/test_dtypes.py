"""Graphs of both dtypes side by side, in one table of types."""

import numpy as np
import pytest

import edbatch as eb

DIM = 6
DTYPES = ["float32", "float64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_layouts_that_other_graphs_have_made(dtype):
    """Of both dtypes, after the graph has run, and before it goes back."""
    with eb.Graph(policy="sufficient", dtype=dtype):
        xs = [eb.input(np.full(DIM, float(at))) for at in range(3)]
        total = eb.sum([x * x for x in xs])
    total.value()
    for other in DTYPES:
        with eb.Graph(policy="sufficient", dtype=other):
            eb.forward([eb.tanh(eb.zeros((2, 31))), eb.mean([eb.zeros(37), eb.ones(37)])])
    total.backward(np.ones(DIM))
    np.testing.assert_array_equal([x.gradient() for x in xs], [np.full(DIM, 2.0 * at) for at in range(3)])


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_have_the_digits_of_the_graph(dtype):
    tenth = np.dtype(dtype).type(0.1)
    with eb.Graph(dtype=dtype):
        one = eb.scalar(1.0)
        found = [one * 0.1, eb.cell(lambda x: x * 0.1)(one), (eb.array([one, one]) * 0.1)[1]]
    assert [x.value() for x in found] == [tenth] * 3
