"""Gradients where entries are equal, or at a limit: PyTorch's."""

import numpy as np
import pytest

import edbatch as eb

torch = pytest.importorskip("torch")
A = np.array([[1.0, 2.0, 2.0, -1.0, 0.0], [3.0, 3.0, -2.0, 0.5, -0.0]])
B = np.array([[1.0, 3.0, 2.0, -2.0, -0.0], [3.0, 1.0, -2.0, 0.5, 0.0]])
WEIGHTS = np.arange(1.0, 11.0).reshape(2, 5)

OPS = {
    "maximum": (eb.maximum, torch.maximum),
    "minimum": (eb.minimum, torch.minimum),
    "maximum of a list": (lambda a, b: eb.maximum([a, b, a]), lambda a, b: torch.stack([a, b, a]).amax(0)),
    "minimum of a list": (lambda a, b: eb.minimum([a, b, a]), lambda a, b: torch.stack([a, b, a]).amin(0)),
    "max": (lambda a, b: eb.max(eb.stack([a, b]), 0), lambda a, b: torch.stack([a, b]).amax(0)),
    "min": (lambda a, b: eb.min(eb.stack([a, b]), 0), lambda a, b: torch.stack([a, b]).amin(0)),
    "with a row": (lambda a, b: eb.maximum(a, b[0]), lambda a, b: torch.maximum(a, b[0])),
    "low": (lambda a, b: eb.clip(a * b, 1), lambda a, b: torch.clamp(a * b, min=1)),
    "high": (lambda a, b: eb.clip(a * b, high=4.0), lambda a, b: torch.clamp(a * b, max=4.0)),
    "low and high": (lambda a, b: eb.clip(a * b, 1.0, 4), lambda a, b: torch.clamp(a * b, 1.0, 4)),
}


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("cells", [False, True], ids=["ops", "cell"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_equal_entries(name, cells, dtype):
    ours, theirs = OPS[name]
    a, b = (torch.tensor(x, dtype=getattr(torch, dtype), requires_grad=True) for x in (A, B))
    want = theirs(a, b)
    (want * torch.tensor(WEIGHTS, dtype=want.dtype)).sum().backward()
    with eb.Graph(policy="sufficient", dtype=dtype):
        x, y = eb.input(A), eb.input(B)
        found = (eb.cell(ours) if cells else ours)(x, y)
        loss = eb.sum(found * eb.input(WEIGHTS))
    loss.backward()
    np.testing.assert_array_equal(found.value(), want.detach().numpy())
    np.testing.assert_allclose(x.gradient(), a.grad.numpy(), rtol=1e-6)
    np.testing.assert_allclose(y.gradient(), b.grad.numpy(), rtol=1e-6)
