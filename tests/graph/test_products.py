"""`@` of all ranks against NumPy's, with parameters on either side; gradients against PyTorch."""

from itertools import cycle

import numpy as np
import pytest

import edbatch as eb
from tests.arrays import on_host

torch = pytest.importorskip("torch")

SHAPES = [
    ((2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)),
    ((2, 3), (2, 5, 3, 4)),
    ((3,), (5, 3, 4)),
    ((5, 2, 3), (3, 4)),
    ((5, 2, 3), (3,)),
    ((2, 5, 2, 3), (3,)),
    ((2, 5, 2, 3), (3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((1, 2, 3), (5, 3, 4)),
    ((5, 2, 3), (1, 3, 4)),
    ((2, 1, 2, 3), (5, 3, 4)),
    ((2, 1, 2, 3), (1, 5, 3, 4)),
]


@pytest.mark.parametrize("in_cell", [False, True])
@pytest.mark.parametrize(
    ("left", "right", "parameter"),
    [(*shapes, kind) for shapes, kind in zip(SHAPES, cycle(["left", "right", "none", "both"]), strict=False)],
)
def test_products(left, right, parameter, in_cell):
    random = np.random.default_rng(0)
    model = eb.ParameterCollection(seed=0)
    fixed = {
        side: model.add_parameters(shape, init=random.standard_normal(shape))
        for side, shape in (("left", left), ("right", right))
        if parameter in (side, "both")
    }
    samples = [
        [fixed.get(side, random.standard_normal(shape)) for side, shape in (("left", left), ("right", right))]
        for _ in range(3)
    ]

    def product(x, *given):
        given = iter(given)
        a, b = (fixed[side] if side in fixed else next(given) for side in ("left", "right"))
        return eb.tanh(a @ b) * x

    call = eb.cell(product) if in_cell else product
    tensors = {x.name: torch.tensor(x.value().astype(np.float64), requires_grad=True) for x in fixed.values()}
    loss, found = 0.0, []
    for sample in samples:
        a, b = (tensors[x.name] if isinstance(x, eb.Parameter) else torch.tensor(x, requires_grad=True) for x in sample)
        y = torch.tanh(a @ b) * 0.5
        found.append(y.detach().numpy())
        loss = loss + (y**2).sum()
    loss.backward()
    with eb.Graph(policy="sufficient"):
        ys = [
            call(eb.scalar(0.5), *(eb.input(x) for x in sample if not isinstance(x, eb.Parameter)))
            for sample in samples
        ]
        total = eb.sum([eb.sum(eb.square(y)) for y in ys])
    total.backward()
    for y, want in zip(ys, found, strict=True):
        assert y.shape == want.shape == np.matmul(np.empty(left), np.empty(right)).shape
        np.testing.assert_allclose(y.value(), want, rtol=1e-5, atol=1e-6)
    for x in fixed.values():
        np.testing.assert_allclose(on_host(x.grad()), tensors[x.name].grad.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("in_cell", [False, True])
@pytest.mark.parametrize("rows", [1, 20])
def test_rows_times_a_transposed_parameter(rows, in_cell):
    """One product for all rows of a batch; the same rows as parts of wider matrices, too, and beside other uses."""
    random = np.random.default_rng(1)
    model = eb.ParameterCollection(seed=0)
    W = model.add_parameters((4, 3), init=random.standard_normal((4, 3)))
    samples = [random.standard_normal((rows, 6)) for _ in range(7)]

    def product(x):
        a, b = eb.split(x, 2, axis=1)
        return eb.tanh(a @ W.T) - b @ W.T + eb.sum(W) * (x[:, :3] @ W.T)

    call = eb.cell(product) if in_cell else product
    w = torch.tensor(W.value().astype(np.float64), requires_grad=True)
    tensors = [torch.tensor(x, requires_grad=True) for x in samples]
    expected = [torch.tanh(x[:, :3] @ w.T) - x[:, 3:] @ w.T + w.sum() * (x[:, :3] @ w.T) for x in tensors]
    sum((y**2).sum() for y in expected).backward()
    with eb.Graph() as graph:
        inputs = [eb.input(x) for x in samples]
        ys = [call(x) for x in inputs]
        loss = eb.sum([eb.sum(y * y) for y in ys])
    loss.backward()
    for y, want in zip(ys, expected, strict=True):
        np.testing.assert_allclose(on_host(y.value()), want.detach().numpy(), rtol=2e-4, atol=1e-4)
    np.testing.assert_allclose(W.grad(), w.grad.numpy(), rtol=2e-4, atol=2e-3)
    for x, tensor in zip(inputs, tensors, strict=True):
        np.testing.assert_allclose(on_host(x.gradient()), tensor.grad.numpy(), rtol=2e-4, atol=1e-3)
    assert in_cell or graph.report().batches < 20
