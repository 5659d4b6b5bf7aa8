"""Layer normalisation of what is far from 0, or very large."""

import numpy as np
import pytest

import edbatch as eb

torch = pytest.importorskip("torch")
WEIGHTS = np.array([1.0, -2.0, 0.5], np.float32)
ROWS = [[1e30, 1e30, 1], [3e19, 0, 0], [1e7, 1e7 + 1, 1e7], [1e5 + 0.25, 1e5, 1e5 + 0.5], [1e7 + 1] * 3, [1e-30, 0, 0]]


@pytest.mark.parametrize("cells", [False, True], ids=["ops", "cell"])
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_layer_norm_is_that_in_float64(row, cells):
    def norm(x, gain, bias):
        return eb.dot(eb.layer_norm(x * 1, gain, bias), WEIGHTS)

    x = np.array(row, np.float32)
    with eb.Graph():
        given, gain = eb.input(x), eb.input(np.ones(3))
        y = (eb.cell(norm) if cells else norm)(given, gain, eb.zeros(3))
    y.backward()
    exact, exact_gain = (torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in (x, np.ones(3)))
    want = torch.nn.functional.layer_norm(exact, (3,), exact_gain) @ torch.tensor(WEIGHTS, dtype=torch.float64)
    want.backward()
    np.testing.assert_allclose(y.value(), want.item(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(gain.gradient(), exact_gain.grad, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        given.gradient(), exact.grad, rtol=1e-4, atol=1e-5 / exact.detach().std(correction=0).clip(3e-3)
    )
