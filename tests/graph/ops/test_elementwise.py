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
@pytest.mark.parametrize(("cells", "dtype"), [(False, "float64"), (True, "float32")], ids=["ops", "cell"])
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


SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.25])
GATES = {
    "relu": (eb.relu, torch.relu),
    "leaky_relu": (lambda x: eb.leaky_relu(x, 0.1), lambda x: torch.nn.functional.leaky_relu(x, 0.1)),
    "elu": (eb.elu, torch.nn.functional.elu),
    "clip": (lambda x: eb.clip(x, -0.5, 0.5), lambda x: torch.clamp(x, -0.5, 0.5)),
    "low": (lambda x: eb.clip(x, 0), lambda x: torch.clamp(x, min=0)),
}


def _backward(call, operands, gradient, cells):
    with eb.Graph(policy="sufficient", dtype="float64"):
        inputs = [eb.input(x) for x in operands]
        found = (eb.cell(call) if cells else call)(*inputs)
    found.backward(gradient=gradient)
    return [x.gradient() for x in inputs]


@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize("cells", [False, True], ids=["ops", "cell"])
def test_what_is_shut_lets_nothing_through(name, cells):
    """Not even an infinite gradient, whose product with zero would be NaN; and NaN entries are as open as PyTorch's."""
    ours, theirs = GATES[name]
    for g in (1.0, np.inf, -np.inf, np.nan):
        gradient = np.full(SPECIAL.shape, g)
        x = torch.tensor(SPECIAL, requires_grad=True)
        theirs(x).backward(torch.tensor(gradient))
        (found,) = _backward(ours, [SPECIAL], gradient, cells)
        known = slice(name == "elu", None)  # of NaN, which is the first, PyTorch's depends on the processor
        np.testing.assert_array_equal(found[known], x.grad.numpy()[known])


PAIRS = {"maximum": (np.maximum, eb.maximum), "minimum": (np.minimum, eb.minimum)}


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("how", ["two", "list", "axis"])
@pytest.mark.parametrize("cells", [False, True], ids=["ops", "cell"])
@pytest.mark.parametrize("g", [1.0, -np.inf])
def test_the_gradient_goes_to_what_is_the_result(name, how, cells, g):
    of_two, ours = PAIRS[name]
    a, b = (x.ravel() for x in np.meshgrid(SPECIAL, SPECIAL))
    call = {
        "two": ours,
        "list": lambda a, b: ours([a, b]),
        "axis": lambda a, b: (eb.max if name == "maximum" else eb.min)(eb.stack([a, b]), 0),
    }[how]
    found = _backward(call, [a, b], np.full(a.shape, g), cells)
    best = of_two(a, b)
    taken = [(x == best) | (np.isnan(x) & np.isnan(best)) for x in (a, b)]
    for gradient, mine in zip(found, taken, strict=True):
        np.testing.assert_array_equal(gradient, np.where(mine, g / (0.0 + taken[0] + taken[1]), 0.0))


def test_a_power_of_zero_lets_nothing_through():
    x, y = _backward(eb.power, [np.array([0.0, 2.0, np.nan]), np.zeros(3)], np.full(3, np.inf), False)
    np.testing.assert_array_equal(x, 0)
    np.testing.assert_array_equal(y, [0, np.inf, np.nan])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_power_of_minus_one_is_a_division(dtype):
    numbers = np.array([2.0, -4.0, 3.0, 0.0, -0.0, np.inf, np.nan], dtype)
    with eb.Graph(policy="sufficient", dtype=dtype):
        x = eb.input(numbers)
        found = [x**-1, x**-1.0]
    with np.errstate(divide="ignore"):
        for y in found:
            np.testing.assert_array_equal(y.value(), numbers**-1)
    found[0].backward(gradient=np.ones(7))
    np.testing.assert_allclose(x.gradient()[:3], [-1 / 4, -1 / 16, -1 / 9], rtol=1e-6)
