"""Concatenation of scalars and numbers, whose gradients come back to each of them."""

import numpy as np
import pytest

import edbatch as eb


@pytest.mark.parametrize("cells", [False, True], ids=["ops", "cell"])
def test_scalars_count_as_one_entry(cells):
    def together(a, v):
        return eb.concatenate([a, v, 3.0, a * 2]) * np.arange(1.0, 6.0)

    together = eb.cell(together) if cells else together
    with eb.Graph(dtype="float64"):
        samples = [(eb.scalar(i), eb.input([i, i + 1.0])) for i in range(3)]
        ys = [together(a, v) for a, v in samples]
        loss = eb.sum(eb.sum(y) for y in ys)
    loss.backward()
    for i, (y, (a, v)) in enumerate(zip(ys, samples, strict=True)):
        np.testing.assert_allclose(y.value(), np.array([i, i, i + 1, 3, 2 * i]) * np.arange(1, 6))
        np.testing.assert_allclose(a.gradient(), 1 + 2 * 5)
        np.testing.assert_allclose(v.gradient(), [2, 3])
