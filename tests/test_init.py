"""Initializers: the distributions that PyTorch draws from, and values that follow from the model's seed."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.init import NAMES

SHAPES = [(200, 100), (100, 200), (30, 20, 25)]


def initial(init, shape, seed=0, dtype="float64"):
    return eb.ParameterCollection(seed=seed, dtype=dtype).add_parameters(shape, init=init).value()


def draws(function, shape, *arguments, **named):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    return getattr(torch.nn.init, function)(torch.empty(shape, dtype=torch.float64), *arguments, **named).numpy()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("init", "function", "named"),
    [
        ("xavier_uniform", "xavier_uniform_", {}),
        ("glorot_uniform", "xavier_uniform_", {}),
        ("glorot", "xavier_uniform_", {}),
        ("xavier_normal", "xavier_normal_", {}),
        ("glorot_normal", "xavier_normal_", {}),
        ("kaiming_uniform", "kaiming_uniform_", {}),
        ("he_uniform", "kaiming_uniform_", {}),
        ("kaiming_normal", "kaiming_normal_", {}),
        ("he_normal", "kaiming_normal_", {}),
        ("normal", "normal_", {}),
        ("zeros", "zeros_", {}),
        ("ones", "ones_", {}),
        (eb.init.Xavier("normal", gain=2.0), "xavier_normal_", {"gain": 2.0}),
        (eb.init.Kaiming("uniform", fan="out"), "kaiming_uniform_", {"mode": "fan_out"}),
        (eb.init.Kaiming("normal", gain=5 / 3), "kaiming_normal_", {"nonlinearity": "tanh"}),
        (eb.init.Normal(0.01, mean=3.0), "normal_", {"mean": 3.0, "std": 0.01}),
        (eb.init.Uniform(2.0, 3.0), "uniform_", {"a": 2.0, "b": 3.0}),
        (eb.init.Constant(0.25), "constant_", {"val": 0.25}),
    ],
)
def test_the_distributions_are_pytorchs(init, function, named, shape):
    """By their bounds, means and deviations, of 15,000 entries and more."""
    found, want = initial(init, shape), draws(function, shape, **named)
    assert found.shape == want.shape
    spread = want.std()
    assert abs(found.mean() - want.mean()) <= 0.05 * spread
    assert found.std() == pytest.approx(spread, rel=0.02)
    uniform = "uniform" in function
    for extreme in (np.min, np.max):
        assert extreme(found) == pytest.approx(extreme(want), abs=(0.01 if uniform else 1.5) * spread)


@pytest.mark.parametrize("shape", [(30, 20), (20, 30), (6, 2, 2), (3, 4, 5), (5, 5)])
def test_orthogonal_rows_or_columns(shape):
    for init, gain in (("orthogonal", 1.0), (eb.init.Orthogonal(gain=3.0), 3.0)):
        found = initial(init, shape).reshape(shape[0], -1)
        want = draws("orthogonal_", shape, gain=gain).reshape(shape[0], -1)
        few = min(found.shape)
        for matrix in (found, want):
            product = matrix @ matrix.T if len(matrix) == few else matrix.T @ matrix
            np.testing.assert_allclose(product, gain**2 * np.eye(few), atol=1e-12)


@pytest.mark.parametrize("init", [*NAMES, eb.init.Normal(0.1), lambda rng, shape: rng.random(shape)])
def test_values_follow_from_the_seed(init):
    np.testing.assert_array_equal(initial(init, (4, 5), seed=1), initial(init, (4, 5), seed=1))
    if init not in ("zeros", "ones"):
        assert not np.array_equal(initial(init, (4, 5), seed=1), initial(init, (4, 5), seed=2))
    assert initial(init, (4, 5), dtype="float32").dtype == np.float32


def test_vectors():
    assert not initial("glorot", (3,)).any()
    for init in ("xavier_uniform", "kaiming_normal", "orthogonal"):
        with pytest.raises(eb.EdBatchError, match=r"init: expected at least two axes, got shape \(3,\)"):
            initial(init, (3,))


@pytest.mark.parametrize(
    ("init", "message"),
    [
        ("gloro", "unknown init 'gloro'; expected glorot, zeros, ones"),
        (lambda rng, shape: np.zeros(3), r"init has shape \(3,\), expected \(2, 2\)"),
        (lambda rng, shape: 0.5, r"init has shape \(\), expected \(2, 2\)"),
        (lambda rng, shape: "text", "init: expected numbers"),
        (np.zeros(3), r"init has shape \(3,\), expected \(2, 2\)"),
        (eb.init.Xavier("cauchy"), "init: distribution='cauchy'; expected"),
        (eb.init.Kaiming(fan="both"), "init: fan='both'; expected"),
        (None, "init: expected numbers"),
        (1e39, "init: 1e\\+39 is too large for float32"),
        ([[1, 2], [3, -1e300]], "init: 1e\\+300 is too large for float32"),
        (eb.init.Constant(1e39), "init: 1e\\+39 is too large for float32"),
    ],
)
def test_what_gives_no_values(init, message):
    model = eb.ParameterCollection()
    with pytest.raises(eb.EdBatchError, match=f"parameter 'W': {message}"):
        model.add_parameters((2, 2), name="W", init=init)
    assert len(model) == 0


def test_infinite_values_are_values_and_too_large_ones_are_not():
    W = eb.ParameterCollection().add_parameters(2, init=[-np.inf, np.inf])
    for use in (W.set_value, W.set_grad):
        with pytest.raises(eb.EdBatchError, match=r"1e\+39 is too large for float32"):
            use([0.0, 1e39])
    assert W.value().tolist() == [-np.inf, np.inf]
    assert not W.has_grad
    W.set_value([np.nan, np.inf])
    W64 = eb.ParameterCollection(dtype="float64").add_parameters(1, init=1e39)
    assert W64.value() == [1e39]
