"""Element-wise ops in float32: against float64 over the whole range, and PyTorch's gradients at special points."""

import numpy as np
import pytest
from scipy import special

import edbatch as eb
from tests.arrays import on_host

torch = pytest.importorskip("torch")
GRID = np.concatenate(
    [
        np.linspace(-20, 20, 4001),
        np.linspace(-250, 250, 2501),
        np.linspace(-88, 88, 3521),
        np.logspace(-30, 1, 500),
        -np.logspace(-30, 1, 500),
        [0.0, -0.0],
    ]
).astype(np.float32)

VALUES = {
    "sigmoid": special.expit,
    "tanh": np.tanh,
    "softplus": lambda x: np.logaddexp(x, 0),
    "log_sigmoid": lambda x: -np.logaddexp(-x, 0),
    "silu": lambda x: x * special.expit(x),
    "gelu": lambda x: 0.5 * x * special.erfc(-x * 0.5**0.5),
    "erf": special.erf,
    "erfc": special.erfc,
    "softsign": lambda x: x / (1 + np.abs(x)),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
}
GRADIENTS = {  # by PyTorch, in float64; what is computed of a rounded result cannot be better than absolutely right
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "softplus": torch.nn.functional.softplus,
    "log_sigmoid": torch.nn.functional.logsigmoid,
    "silu": torch.nn.functional.silu,
    "gelu": torch.nn.functional.gelu,
    "erf": torch.erf,
    "erfc": torch.erfc,
    "softsign": torch.nn.functional.softsign,
    "elu": torch.nn.functional.elu,
}


def run(function, x, cells):
    """Value and gradient of a sum, outside of cells or in one."""
    called = eb.cell(lambda x: function(x)) if cells else function
    with eb.Graph(policy="none"), np.errstate(all="ignore"):
        given = eb.input(x)
        y = called(given)
        eb.sum(y).backward()
        return on_host(y.value()), on_host(given.gradient())


@pytest.mark.parametrize("cells", [False, True])
@pytest.mark.parametrize("name", VALUES)
def test_values_and_gradients_are_right_to_a_millionth(name, cells):
    got, gradient = run(getattr(eb, name), GRID, cells)
    x = GRID.astype(np.float64)
    want = VALUES[name](x)
    tiny = np.finfo(np.float32).tiny * np.maximum(1, np.abs(x))
    normal = np.abs(want) > tiny
    # Rounding the argument of the error function in gelu alone changes it so much.
    allowed = 1e-6 * (1 + x * x if name == "gelu" else 1)
    assert (np.abs(got - want)[normal] <= (allowed * np.abs(want))[normal]).all()
    assert (np.abs(got) <= tiny)[~normal].all()
    x = torch.tensor(GRID.astype(np.float64), requires_grad=True)
    GRADIENTS[name](x).sum().backward()
    np.testing.assert_allclose(gradient, x.grad.numpy(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("cells", [False, True])
def test_the_logarithm_of_a_small_sigmoid(cells):
    x = np.array([-20.0, -50.0, -80.0], np.float32)
    got, slope = run(lambda x: eb.log(eb.sigmoid(x)), x, cells)
    np.testing.assert_allclose(got, x, rtol=1e-6)
    np.testing.assert_allclose(slope, [1, 1, 1], rtol=1e-6)


POINTS = np.array([0.0, -0.0, 1.0, -1.0, 2.0, 0.5], np.float32)
SPECIAL = {
    "x ** 0": lambda lib, x: x**0,
    "x ** 0.0": lambda lib, x: x**0.0,
    "x ** 1": lambda lib, x: x**1,
    "x ** 2": lambda lib, x: x**2,
    "x ** 3": lambda lib, x: x**3,
    "x ** -1": lambda lib, x: x**-1,
    "x ** -2": lambda lib, x: x**-2,
    "sqrt": lambda lib, x: lib.sqrt(lib.abs(x) * x * x),
    "x ** 0.5": lambda lib, x: (x * x) ** 0.5,
    "abs": lambda lib, x: lib.abs(x),
    "log": lambda lib, x: lib.log(x * x),
    "1 / x": lambda lib, x: 1 / x,
    "2 ** x": lambda lib, x: 2.0**x,
    "relu": lambda lib, x: lib.relu(x),
    "clip": lambda lib, x: (eb.clip if lib is eb else torch.clamp)(x, -1.0, 1.0),
    "leaky_relu": lambda lib, x: (eb.leaky_relu if lib is eb else torch.nn.functional.leaky_relu)(x, 0.1),
    "elu": lambda lib, x: (eb.elu if lib is eb else torch.nn.functional.elu)(x, 0.7),
    "softsign": lambda lib, x: (eb.softsign if lib is eb else torch.nn.functional.softsign)(x),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_gradients_at_special_points_are_pytorchs(name):
    _, got = run(lambda x: SPECIAL[name](eb, x), POINTS, len(name) % 2)  # some in cells
    x = torch.tensor(POINTS, requires_grad=True)
    SPECIAL[name](torch, x).sum().backward()
    np.testing.assert_allclose(got, x.grad.numpy(), rtol=1e-5)


@pytest.mark.parametrize("cells", [False, True])
def test_powers_of_two_operands(cells):
    a, b = (x.ravel() for x in np.meshgrid(*[np.array([0, 1, 2, 0.5], np.float32)] * 2))
    b = np.concatenate([b, [-1, -2]]).astype(np.float32)
    a = np.concatenate([a, [0, 0]]).astype(np.float32)
    power = eb.cell(lambda a, b: a**b) if cells else lambda a, b: a**b
    with eb.Graph(policy="none"), np.errstate(all="ignore"):
        given = eb.input(a), eb.input(b)
        y = power(*given)
        eb.sum(y).backward()
        found = [on_host(y.value()), *(on_host(x.gradient()) for x in given)]
    x, e = (torch.tensor(v, requires_grad=True) for v in (a, b))
    want = x**e
    want.sum().backward()
    for got, expected in zip(found, (want.detach(), x.grad, e.grad), strict=True):
        np.testing.assert_allclose(got, expected.numpy(), rtol=1e-5)


@pytest.mark.parametrize("name", ["norm", "std", "max", "min", "logsumexp", "mean"])
def test_gradients_of_reductions_of_equal_entries(name):
    reduce = getattr(eb, name)
    of_torch = {
        "norm": torch.linalg.vector_norm, "std": lambda x: x.std(unbiased=False), "max": torch.amax, "min": torch.amin,
        "logsumexp": lambda x: torch.logsumexp(x, 0), "mean": torch.mean,
    }  # fmt: skip
    for value in (0.0, -3.0):
        x = np.full(4, value, np.float32)
        _, got = run(lambda x: reduce(x), x, value)  # once in a cell
        wanted = torch.tensor(x, requires_grad=True)
        of_torch[name](wanted).backward()
        np.testing.assert_allclose(got, wanted.grad.numpy(), rtol=1e-6)
