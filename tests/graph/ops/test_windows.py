"""Windows over images and sequences, against PyTorch: edge sizes, ties, infinite entries; and what is refused."""

from itertools import cycle

import numpy as np
import pytest

import edbatch as eb

torch = pytest.importorskip("torch")
F = torch.nn.functional

CONVOLUTIONS = [
    ("conv2d", (1, 1, 1), (1, 1, 1, 1), {}),
    ("conv2d", (3, 4, 4), (2, 3, 4, 4), {}),  # a window that is the whole image
    ("conv2d", (3, 4, 5), (2, 3, 1, 1), {"stride": 3}),  # further than a window goes
    ("conv2d", (2, 7, 9), (4, 2, 3, 2), {"stride": (2, 3), "padding": (1, 2)}),
    ("conv2d", (2, 9, 8), (4, 2, 3, 3), {"dilation": (2, 3)}),
    ("conv2d", (4, 6, 5), (6, 2, 3, 3), {"groups": 2, "padding": 1}),
    ("conv2d", (4, 6, 5), (4, 1, 2, 3), {"groups": 4, "stride": 2, "padding": 2, "dilation": 2}),
    ("conv2d", (1, 2, 2), (1, 1, 2, 2), {"padding": 3}),
    ("conv1d", (3, 1), (2, 3, 1), {}),
    ("conv1d", (3, 8), (2, 3, 8), {"padding": 2}),
    ("conv1d", (4, 9), (6, 2, 3), {"groups": 2, "stride": 2, "dilation": 2, "padding": 1}),
    ("conv1d", (4, 9), (6, 2, 4), {"groups": 2, "dilation": 3, "padding": "same"}),
    ("conv2d", (2, 5, 4), (3, 2, 3, 2), {"padding": "same"}),
    ("conv2d", (2, 5, 4), (3, 2, 3, 2), {"padding": "valid", "stride": 2}),
]
POOLS = [
    ("max_pool2d", (2, 1, 1), (1,), {}),
    ("max_pool2d", (2, 4, 5), ((4, 5),), {}),
    ("max_pool2d", (2, 5, 7), (2,), {}),
    ("max_pool2d", (2, 5, 7), (3, 1, 1), {}),
    ("max_pool2d", (2, 7, 9), ((2, 3), (3, 5)), {"padding": (1, 0)}),
    ("max_pool2d", (1, 7, 9), (2, 1), {"dilation": 3}),
    ("max_pool1d", (3, 7), (3, 2, 1), {}),
    ("max_pool1d", (3, 7), (7,), {}),
    ("avg_pool2d", (2, 5, 7), (2,), {}),
    ("avg_pool2d", (2, 5, 7), ((2, 3), 1, (1, 1)), {}),
    ("avg_pool2d", (2, 7, 9), (2, (3, 5)), {}),
    ("avg_pool1d", (3, 7), (2, 4), {}),
    ("avg_pool1d", (3, 6), (2,), {}),
]


def compared(call, of_torch, shapes, dtype, parameters=(), ties=False):
    """Three samples in one batch: values and gradients of all operands are PyTorch's."""
    random = np.random.default_rng(5)
    model = eb.ParameterCollection(dtype=dtype)

    def draw(shape):
        return random.integers(-2, 3, shape).astype(float) if ties else random.normal(size=shape)

    shared = {at: draw(shape) for at, shape in enumerate(shapes) if at in parameters}
    values = [[shared.get(at, draw(shape)) for at, shape in enumerate(shapes)] for _ in range(3)]
    learned = {at: model.add_parameters(x.shape, init=x) for at, x in shared.items()}
    tensors = {at: torch.tensor(x, requires_grad=True) for at, x in shared.items()}
    tight = {"float64": 1e-10, "float32": 2e-5}[dtype]
    with eb.Graph(policy="sufficient", dtype=dtype) as graph:
        terms, given = [], []
        for xs in values:
            operands = [learned[at] if at in learned else eb.input(x) for at, x in enumerate(xs)]
            others = [tensors.get(at, torch.tensor(x, requires_grad=True)) for at, x in enumerate(xs)]
            y, want = call(*operands), of_torch(others[0][None], *others[1:])[0]
            weights = random.normal(size=y.shape)
            want.backward(torch.tensor(weights))
            terms.append(eb.sum(y * eb.input(weights)))
            given += [(y, want.detach())]
            given += [(x, t) for at, (x, t) in enumerate(zip(operands, others, strict=True)) if at not in learned]
        eb.sum(terms).backward()
        for x, t in given:
            assert x.shape == tuple(t.shape)
            got, want = (x.gradient(), t.grad) if t.requires_grad else (x.value(), t)
            np.testing.assert_allclose(got, want.numpy(), rtol=tight, atol=tight)
    for at, parameter in learned.items():
        np.testing.assert_allclose(np.array(parameter.grad()), tensors[at].grad.numpy(), rtol=tight, atol=10 * tight)
    return graph


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")  # PyTorch's, of its speed
@pytest.mark.parametrize(("case", "dtype"), list(zip(CONVOLUTIONS, cycle(["float32", "float64"]), strict=False)))
def test_convolutions(case, dtype):
    name, x, weight, given = case
    call, of_torch = getattr(eb, name), getattr(F, name)
    for parameters in ((), (1, 2)):
        compared(
            lambda *xs: call(*xs, **given),
            lambda *xs: of_torch(*xs, **given),
            [x, weight, weight[:1]],
            dtype,
            parameters,
        )
    compared(lambda *xs: call(*xs, **given), lambda *xs: of_torch(*xs, **given), [x, weight], dtype, (1,))


@pytest.mark.parametrize(("dtype", "ties"), [("float32", True), ("float64", False)])
@pytest.mark.parametrize(("name", "x", "moves", "given"), POOLS)
def test_pools(name, x, moves, given, dtype, ties):
    call, of_torch = getattr(eb, name), getattr(F, name)
    compared(lambda x: call(x, *moves, **given), lambda x: of_torch(x, *moves, **given), [x], dtype, ties=ties)


@pytest.mark.parametrize("given", [(2,), ((2, 3), 1, (1, 2), (2, 1)), ((5, 7),), (1, 1, 0, 3), (2, 2)])
def test_unfold(given):
    compared(lambda x: eb.unfold(x, *given), lambda x: F.unfold(x, *given), [(2, 5, 7)], "float64")


def test_infinite_entries_and_what_is_not_a_number():
    image = np.array([[[-np.inf, -np.inf, 1.0], [-np.inf, -np.inf, np.nan]]])
    with eb.Graph():
        x = eb.input(image)
        y = eb.max_pool2d(x, 2, 1)
        np.testing.assert_array_equal(y.value(), F.max_pool2d(torch.tensor(image), 2, 1).numpy())
        assert eb.max_pool2d(x[:, :, :2], 2).value() == -np.inf
        assert eb.pad(x, 1, -np.inf)[0, 0].value().tolist() == [-np.inf] * 5


@pytest.mark.parametrize("options", [{}, {"cells": False}], ids=str)
@pytest.mark.parametrize(
    "moves", [{"kernel_size": 1, "stride": 2}, {"kernel_size": 2}, {"kernel_size": (1, 2)}], ids=str
)
def test_the_gradient_of_windows_is_not_that_of_the_image(moves, options):
    """A cell returns both; windows overlap, and what is done to one is not done to the others."""
    padding = (0, 1)

    @eb.cell
    def step(x):
        y = eb.unfold(x.reshape(1, 2, 2), **moves, padding=padding)
        return y, x, eb.sum(y * y)

    with eb.options(**options), eb.Graph(dtype="float64"):
        given = eb.input([0.25, -1.5, 1.0, -1.25])
        y, x, squares = step(given)
        weights = np.arange(1.0, y.spec.size + 1).reshape(y.shape)
        loss = eb.sum(y * weights) + eb.sum(x * 3.0) + squares
    loss.backward()
    np.testing.assert_allclose(y.gradient(), weights + 2 * y.value())
    places = torch.tensor(given.value()).reshape(1, 1, 2, 2).requires_grad_()
    F.unfold(places, **moves, padding=padding)[0].backward(torch.tensor(y.gradient()))
    np.testing.assert_allclose(x.gradient(), 3 + places.grad.numpy().reshape(-1))
