"""Functions of each entry that the module brings itself: against SciPy in float64, over their whole range."""

import numpy as np
import pytest
from scipy import special

import edbatch as eb
import edbatch.dynet as dy
from edbatch.devices import current_device
from edbatch.dynet.implicit import implicit

WIDE = np.concatenate([[0.0, 1e-30, 1e-6, 1e-3], np.linspace(0.01, 9, 300), np.geomspace(10, 1e30, 60)])
BOTH = np.concatenate([-WIDE[::-1], WIDE])
INSIDE = np.concatenate([np.linspace(-0.9999, 0.9999, 401), [1e-6, -1e-20]])

# By name: function, derivative, and where.
CASES = {
    "atan": (np.arctan, lambda x: 1 / (1 + x * x), BOTH[np.abs(BOTH) < 1e15]),
    "asin": (np.arcsin, lambda x: 1 / np.sqrt(1 - x * x), INSIDE),
    "acos": (np.arccos, lambda x: -1 / np.sqrt(1 - x * x), INSIDE),
    "asinh": (np.arcsinh, lambda x: 1 / np.sqrt(x * x + 1), BOTH[np.abs(BOTH) < 1e15]),
    "acosh": (np.arccosh, lambda x: 1 / np.sqrt(x * x - 1), 1 + WIDE[(WIDE > 1e-5) & (WIDE < 1e15)]),
    "atanh": (np.arctanh, lambda x: 1 / (1 - x * x), INSIDE),
    "lgamma": (special.gammaln, special.digamma, np.concatenate([WIDE[(WIDE > 1e-7) & (WIDE < 1e20)], [-0.3, -2.7]])),
}


def off(least):
    """What float32 may be off: a GPU's logarithms, whose last place is not the CPU's, are multiplied in lgamma."""
    return least if current_device().name == "cpu" else 5e-6


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name):
    value, slope, where = CASES[name]
    where = where.astype(np.float32).astype(np.float64)
    dy.renew_cg()
    x = dy.inputVector(where)
    y = getattr(dy, name)(x)
    dy.sum_elems(y).backward()
    np.testing.assert_allclose(y.npvalue(), value(where), rtol=2e-6, atol=off(2e-6))
    np.testing.assert_allclose(x.gradient(), slope(where), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in CASES if name != "lgamma"])
def test_small_numbers_keep_their_digits(name):
    value, _, _ = CASES[name]
    where = np.array([1e-3, -2e-5, 3e-9], np.float32) + (name == "acosh")
    dy.renew_cg()
    found = getattr(dy, name)(dy.inputVector(where)).npvalue()
    with np.errstate(invalid="ignore"):
        expected = value(where.astype(np.float64))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


ENDS = [
    ("asin", [1, -1, 2]), ("acos", [1, -1, 2]), ("atanh", [1, -1, 2]), ("acosh", [1, 0.5, np.inf]),
    ("atan", [np.inf, -np.inf, np.nan]), ("asinh", [np.inf, -np.inf, np.nan]), ("lgamma", [1, 2, np.inf]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "edges"), ENDS)
def test_ends_of_the_range(name, edges):
    value, _, _ = CASES[name]
    dy.renew_cg()
    found = getattr(dy, name)(dy.inputVector(edges)).npvalue()
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(found, value(np.array(edges, float)), rtol=1e-6, atol=off(1e-6))


LAZY = [
    *((lambda x, name=name: getattr(dy, name)(x)) for name in CASES),
    dy.sparsemax, lambda x: dy.constrained_softmax(x, x * 0.0 + 0.4),
    lambda x: dy.inverse(dy.concatenate_cols([x, dy.ones(3), dy.square(x)])),
    lambda x: dy.logdet(dy.concatenate_cols([x, dy.ones(3), dy.square(x)])),
]  # fmt: skip


@pytest.mark.parametrize("call", LAZY)
def test_nothing_runs_before_it_is_read_and_set_inputs_reach_it(call):
    dy.renew_cg()
    x = dy.vecInput(3)
    x.set([0.1, 0.4, 0.9])
    y = call(x)
    assert implicit.opened().batches == 0
    first = y.npvalue()
    x.set([0.3, 0.2, 0.8])
    second = y.npvalue()
    dy.renew_cg()
    alone = call(dy.inputVector([0.3, 0.2, 0.8])).npvalue()
    np.testing.assert_allclose(second, alone, rtol=1e-6)
    assert not np.array_equal(first, second)


def test_a_cell_is_given_expressions_of_the_implicit_graph():
    W = dy.ParameterCollection().add_parameters((2, 2), init=np.array([[1.0, 2.0], [3.0, 4.0]]))

    @eb.cell
    def f(x, at: int):
        return W * x + x[at] if x.dim() == ((2,), 1) else x

    @eb.cell
    def reads(x):
        return x * x.value()

    @eb.vertex
    def of_vertex(v):
        v.scatter(v.pull()[at] * v.pull())

    at = 1
    for _ in range(2):
        dy.renew_cg()
        x = dy.inputVector([1.0, 2.0])
        assert f(x, 1).value() == pytest.approx([7, 13])
        found = of_vertex(eb.InputGraph([0, 0], []), eb.array([x])).scattered
        assert found.npvalue() == pytest.approx([2, 4])
        with pytest.raises(eb.EdBatchError, match="reads a value"):
            reads(x)


@pytest.mark.parametrize("array", [[[2.0]], [[0, 1], [1, 0]], [[0, 2, 1], [1, 0, 0], [3, 0, 1]]])
def test_inverses_and_determinants(array):
    """Also where the first pivots are zeros."""
    array = np.array(array, float)
    weights = np.cos(np.arange(array.size)).reshape(array.shape)
    dy.renew_cg()
    x, xs = dy.inputTensor(array), dy.inputTensor(np.stack([array, 2 * array], -1), batched=True)
    expected, logs = np.linalg.inv(array), np.linalg.slogdet(array)[1]
    np.testing.assert_allclose(dy.inverse(xs).npvalue(), np.stack([expected, expected / 2], -1), rtol=1e-5, atol=1e-6)
    assert dy.logdet(xs).npvalue()[0, 0] == pytest.approx(logs, abs=1e-6)
    dy.sum_elems(dy.cmult(dy.inverse(x), dy.inputTensor(weights))).backward()
    np.testing.assert_allclose(x.gradient(), -expected.T @ weights @ expected.T, rtol=1e-4, atol=1e-5)
    dy.logdet(x).backward()
    np.testing.assert_allclose(x.gradient(), expected.T, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="do not broadcast"):
        dy.inverse(dy.inputTensor(np.ones((2, 3))))


@pytest.mark.parametrize("shift", [0.0, 2.0])
def test_projections_on_probabilities(shift):
    random = np.random.default_rng(3)
    for n in (1, 3, 9):
        dy.renew_cg()
        z, limits = random.normal(size=n) * 2 + shift, 1.2 / n + 0.1 * np.sin(np.arange(n))
        sparse = dy.sparsemax(dy.inputVector(z)).npvalue()
        limited = dy.constrained_softmax(dy.inputVector(z), dy.inputVector(limits)).npvalue()
        chosen = sparse > 0
        np.testing.assert_allclose(sparse[chosen], (z - (z[chosen].sum() - 1) / chosen.sum())[chosen], atol=1e-5)
        assert (limited <= limits + 1e-6).all()
        assert [sparse.sum(), limited.sum()] == pytest.approx([1, 1], abs=1e-5)
        free = limited < limits - 1e-6
        assert np.ptp((limited / np.exp(z))[free]) < 1e-5 if free.any() else True
