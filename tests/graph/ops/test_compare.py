"""Comparisons and where: ties, NaN and infinities, operators, gradients that stop, and PyTorch's."""

import operator

import numpy as np
import pytest

import edbatch as eb
from tests.arrays import on_host

A = np.array([1.0, 2.0, 2.0, np.nan, np.nan, np.inf, -np.inf, 0.0])
B = np.array([2.0, 1.0, 2.0, np.nan, 1.0, np.inf, np.inf, -0.0])
NAMES = ["greater", "greater_equal", "less", "less_equal", "equal", "not_equal"]
OPERATORS = {"greater": operator.gt, "greater_equal": operator.ge, "less": operator.lt, "less_equal": operator.le}


@pytest.mark.parametrize(("cells", "dtype"), [(False, "float64"), (True, "float32")])
@pytest.mark.parametrize("name", NAMES)
def test_comparisons_are_numpys(name, cells, dtype):
    compare = eb.cell(lambda a, b: getattr(eb, name)(a, b)) if cells else getattr(eb, name)
    with eb.Graph(policy="none", dtype=dtype):
        y = on_host(compare(eb.input(A), eb.input(B)).value())
    assert y.dtype == dtype
    np.testing.assert_array_equal(y, getattr(np, name)(A, B))


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name):
    compare = OPERATORS[name]
    W = eb.ParameterCollection().add_parameters((3,), init=[0.0, 1.0, 2.0])
    given = np.array([1.0, 0.0, 2.0], np.float32)
    with eb.Graph(policy="none"):
        x = eb.input(given)
        for mine, want in [
            (compare(x, 1), compare(given, 1)),
            (compare(1, x), compare(1, given)),
            (compare(np.float32(1), x), compare(1, given)),
            (compare(x, W), compare(given, W.value())),
            (compare(W, 1.0), compare(W.value(), 1)),
            (compare(W.value(), x), compare(W.value(), given)),
            (compare(x, W.value()), compare(given, W.value())),
        ]:
            np.testing.assert_array_equal(on_host(mine.value()), want)


@pytest.mark.parametrize("cells", [False, True])
def test_where_lets_nothing_of_the_other_branch_through(cells):
    """Neither values nor gradients, be they infinite or NaN."""
    choose = eb.cell(lambda c, a, b: eb.where(c, a, b)) if cells else eb.where
    condition = np.array([1.0, 0.0, -0.0, np.nan, -2.0])
    with eb.Graph(policy="none"):
        c, a, b = eb.input(condition), eb.input([1, np.nan, np.inf, 2, 3]), eb.input([np.nan, 4, 5, np.inf, -np.inf])
        y = choose(c, a, b)
        eb.sum(y * eb.input([2.0, 3.0, 4.0, 5.0, 6.0])).backward()
        np.testing.assert_array_equal(on_host(y.value()), [1, 4, 5, 2, 3])
        np.testing.assert_array_equal(on_host(a.gradient()), [2, 0, 0, 5, 6])
        np.testing.assert_array_equal(on_host(b.gradient()), [0, 3, 4, 0, 0])
        np.testing.assert_array_equal(on_host(c.gradient()), np.zeros(5))


def test_conditions_of_arrays_and_parameters():
    model = eb.ParameterCollection()
    W = model.add_parameters((2,), init=[3.0, -4.0])
    with eb.Graph(policy="none"):
        y = eb.where(np.array([True, False]), W, eb.input([1.0, 2.0]))
        z = eb.where(W > 0, W, 0)
        eb.sum(y + z).backward()
        np.testing.assert_array_equal(on_host(y.value()), [3, 2])
        np.testing.assert_array_equal(on_host(z.value()), [3, 0])
    np.testing.assert_array_equal(on_host(W.grad()), [2, 0])
