"""Expressions and parameters as numbers, as conditions, and in the hands of Python and NumPy."""

import inspect
import math

import numpy as np
import pytest

import edbatch as eb


@pytest.fixture
def values():
    W = eb.ParameterCollection().add_parameters((2, 2), init=[[1, 2], [3, 4]], name="W")
    with eb.Graph():
        yield eb.scalar(2.5), eb.input([1.0, 2.0]), W


def test_numbers(values):
    s, x, W = values
    loss = eb.sum(x * s)
    assert float(loss) == 7.5
    assert loss.item() == 7.5
    assert isinstance(loss.item(), float)
    assert int(loss) == 7
    assert f"{loss:.3f} {loss:>6.1f}" == "7.500    7.5"
    assert f"{x}" == str(x) == repr(x)
    assert x[:1].reshape(1, 1).item() == 1.0
    assert x.tolist() == [1.0, 2.0]
    assert W.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    np.testing.assert_array_equal(x.numpy(), [1, 2])
    assert +x is x
    assert (round(s), round(s * 1.001, 2), math.trunc(s), math.floor(s), math.ceil(s)) == (2, 2.5, 2, 2, 3)


def test_sizes(values):
    s, x, W = values
    assert (len(x), x.ndim, x.size, x.shape, x.dtype) == (2, 1, 2, (2,), np.float32)
    assert (len(W), W.ndim, W.size) == (2, 2, 4)
    assert (s.ndim, s.size) == (0, 1)
    assert [row.tolist() for row in W] == [[1.0, 2.0], [3.0, 4.0]]
    a, b = x
    assert (float(a), float(b)) == (1.0, 2.0)


def test_arrays_and_numbers_beside_it(values):
    _, x, W = values
    ones = np.ones(2, np.float32)
    for two in (2, 2.0, np.float32(2), np.float64(2), np.int64(2), np.array(2.0)):
        np.testing.assert_array_equal((two * x + x * two).value(), [4, 8])
    for sum_ in (ones + x, x + ones):
        np.testing.assert_array_equal(sum_.value(), [2, 3])
    np.testing.assert_array_equal((ones - x).value(), [0, -1])
    np.testing.assert_array_equal((ones @ x).value(), 3)
    np.testing.assert_array_equal((np.ones((3, 2)) @ x).value(), [3, 3, 3])
    np.testing.assert_array_equal((ones @ W).value(), [4, 6])
    for true in (x * np.True_, np.True_ * x, x - np.False_, eb.where(np.float64(1) > 0, x, eb.zeros(2))):
        np.testing.assert_array_equal(true.value(), [1, 2])


def test_an_array_is_copied_at_every_call():
    step = eb.cell(lambda h, x, rate: eb.tanh(h + rate * x))
    given = np.ones(3)
    with eb.Graph(policy="sufficient"):
        x = eb.input([1.0, 2.0, 3.0])
        first, of_cell = x + given, step(x, given, 0.5)
        given += 1
        second, of_cell2 = x + given, step(x, given, 0.5)
    np.testing.assert_array_equal(first.value(), [2, 3, 4])
    np.testing.assert_array_equal(second.value(), [3, 4, 5])
    np.testing.assert_allclose(of_cell.value(), np.tanh([1.5, 2.5, 3.5]), rtol=1e-6)
    np.testing.assert_allclose(of_cell2.value(), np.tanh([2, 3, 4]), rtol=1e-6)


def test_comparison_and_truth(values):
    s, x, W = values
    y = eb.tanh(x)
    assert x in [x]
    assert len({x, y, s}) == 3
    assert {x: 1}[x] == 1
    for compare in (lambda: x in [y], lambda: [x, y].index(y)):
        with pytest.raises(eb.EdBatchError, match="== of an expression"):
            compare()
    b = eb.ParameterCollection().add_parameters((2, 2), name="b")
    assert W == W
    assert b != W
    assert [W, b].index(b) == 1
    assert W not in [b, None, "W"]
    assert {W: 1, b: 2}[b] == 2


def test_signatures():
    for kind in (eb.Expression, eb.Parameter, eb.LookupParameters):
        inspect.signature(kind)
        for name, member in inspect.getmembers(kind, callable):
            if not name.startswith("_"):
                assert inspect.signature(member), name
                assert inspect.getdoc(member), name


def test_methods_that_are_no_functions_of_the_name():
    """Others are those of random programs."""
    X = np.random.default_rng(0).uniform(0.1, 0.9, (2, 3, 4))
    with eb.Graph(dtype="float64"):
        x = eb.input(X)
        pairs = [
            (x.flatten(), X.ravel()), (x.view(-1, 4), X.reshape(-1, 4)), (x.permute(2, 0, 1), X.transpose(2, 0, 1)),
            (x[0].t(), X[0].T), (x.T, X.T), (x.chunk(2, 2)[1], X[:, :, 2:]), (x.transpose((1, 0, 2)), X.swapaxes(0, 1)),
            (x.clamp(min=0.3), X.clip(0.3)), (x.clamp(max=0.3), X.clip(max=0.3)), (x.reshape((6, 4)), X.reshape(6, 4)),
            (x.max(axis=0, keepdims=True), X.max(0, keepdims=True)), (x.std(axis=1), X.std(1)),
        ]  # fmt: skip
    for found, want in pairs:
        np.testing.assert_allclose(found.value(), want)
