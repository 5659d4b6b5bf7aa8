"""Whether a NumPy array is one for all entries of an array of expressions, or a row for each: never the wrong one."""

import numpy as np
import pytest

import edbatch as eb

N = 4
EACH = np.array([0.5, 2.0, 1.0, 3.0])
REFUSED = r"array of shape \(4,.*for each of 4 (entries|vertices).*(eb\.array\(x\)|each pulls a row)"
# All functions of two operands are made alike, and so are all operators.
CALLS = {
    "add": eb.add,
    "power": eb.power,
    "greater": eb.greater,
    "-": lambda a, b: a - b,
    "**": lambda a, b: a**b,
    "<": lambda a, b: a < b,
    "where": lambda a, b: eb.where(1.0, a, b),
    "where, condition": lambda a, b: eb.where(a, b, 1.0),
    "concatenate": lambda a, b: eb.concatenate([a, b]),
}
SIDES = {"left": lambda call: lambda x, t: call(t, x), "right": lambda call: call}


def in_vertex(function):
    def of_vertex(v):
        v.push(function(v.pull()))
        v.scatter(1.0)
        v.gather()

    return lambda xs: eb.vertex(of_vertex)(eb.InputGraph.of_chains([1] * N), xs).pushed


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", CALLS)
class TestEveryPair:
    """Functions of two operands, in both orders."""

    @pytest.mark.parametrize("shape", [(N,), (N, 2)], ids=str)
    def test_a_row_for_each_is_no_constant(self, name, side, shape):
        if name == "concatenate" and len(shape) > 1:
            return  # of a number and a matrix there is none
        call = SIDES[side](CALLS[name])
        t = np.resize(EACH, shape)
        passed = eb.cell(lambda x, t: call(x, t))
        closed = eb.cell(lambda x: call(x, t))
        with eb.Graph():
            xs = eb.array(EACH)
            for way in (lambda: call(xs, t), lambda: passed(xs, t), lambda: closed(xs), lambda: closed(xs)):
                with pytest.raises(eb.EdBatchError, match=REFUSED):
                    way()
            with pytest.raises(eb.EdBatchError, match=REFUSED):
                in_vertex(lambda x: call(x, t))(xs)

    def test_one_that_fits_is_for_all(self, name, side):
        call = SIDES[side](CALLS[name])
        X = np.arange(1.0, 17.0).reshape(N, N) / 8
        cell = eb.cell(lambda x, t: call(x, t))
        with eb.Graph(dtype="float64"):
            xs = eb.array(X)
            expected = [call(eb.input(x), eb.input(EACH)).value() for x in X]
            for found in (call(xs, EACH), cell(xs, EACH), in_vertex(lambda x: call(x, EACH))(xs)):
                np.testing.assert_array_equal(found.value(), expected)

    def test_expressions_of_each_and_for_all(self, name, side):
        call = SIDES[side](CALLS[name])
        with eb.Graph(dtype="float64"):
            xs = eb.array(EACH)
            found, wide = call(xs, eb.array(EACH[::-1].copy())), call(xs, eb.input(EACH))
            for at, x in enumerate(EACH):
                np.testing.assert_array_equal(
                    found[at].value(), call(eb.scalar(x), eb.scalar(EACH[N - 1 - at])).value()
                )
                np.testing.assert_array_equal(wide[at].value(), call(eb.scalar(x), eb.input(EACH)).value())


def test_products_take_constant_matrices():
    X, M = np.arange(8.0).reshape(N, 2), np.arange(8.0).reshape(N, 2)
    with eb.Graph():
        xs = eb.array(X)
        np.testing.assert_array_equal((M @ xs).value(), X @ M.T)
        np.testing.assert_array_equal((xs @ M.T).value(), X @ M.T)


@pytest.mark.parametrize("name", ["squared_distance", "l1_distance", "huber", "binary_cross_entropy"])
def test_targets_of_each_are_an_array_of_expressions(name):
    p = EACH / 4
    with eb.Graph():
        with pytest.raises(eb.EdBatchError, match=r"eb\.array\(x\)"):
            getattr(eb, name)(eb.array(p), p[::-1].copy())
        found = getattr(eb, name)(eb.array(p), eb.array(p[::-1].copy())).value()
        np.testing.assert_array_equal(
            found, [getattr(eb, name)(eb.scalar(a), eb.scalar(b)).value() for a, b in zip(p, p[::-1], strict=True)]
        )


LABELS = [2, 0, 1, 1]
LOSSES = {
    "cross_entropy": lambda x, label: eb.cross_entropy(x, label),
    "smoothed": lambda x, label: eb.cross_entropy(x, label, label_smoothing=0.1),
    "hinge": lambda x, label: eb.hinge(x, label),
}


@pytest.mark.parametrize("classes", [3, N])
@pytest.mark.parametrize("name", LOSSES)
class TestLabels:
    """Labels of an array's entries, whether there are as many classes or not."""

    X = np.random.default_rng(0).normal(size=(N, 5))

    @pytest.mark.parametrize("given", [list, tuple, np.array, lambda x: [np.int64(one) for one in x]])
    def test_integers_are_one_for_each(self, name, classes, given):
        with eb.Graph():
            X = self.X[:, :classes]
            expected = [LOSSES[name](eb.input(x), label).value() for x, label in zip(X, LABELS, strict=True)]
            np.testing.assert_array_equal(LOSSES[name](eb.array(X), given(LABELS)).value(), expected)
            with pytest.raises(eb.EdBatchError, match="for each of 4 entries, got 3"):
                LOSSES[name](eb.array(X), given(LABELS[:3]))

    @pytest.mark.parametrize("given", [np.array(LABELS, float), list(map(float, LABELS)), [True, False, True, True]])
    def test_whole_numbers_are_refused(self, name, classes, given):
        with eb.Graph(), pytest.raises(eb.EdBatchError, match=r"np\.array\(labels\)"):
            LOSSES[name](eb.array(self.X[:, :classes]), given)


@pytest.mark.parametrize("given", [np.array, list])
def test_distributions(given):
    rng = np.random.default_rng(0)
    X, p = rng.normal(size=(N, N)), np.array([0.1, 0.2, 0.3, 0.4])
    P = rng.dirichlet(np.ones(N), N)

    def expected(targets):
        return -(targets * (X - np.log(np.exp(X).sum(1, keepdims=True)))).sum(1)

    with eb.Graph(dtype="float64"):
        xs = eb.array(X)
        np.testing.assert_allclose(eb.cross_entropy(xs, given(p)).value(), expected(p))
        np.testing.assert_allclose(eb.cross_entropy(xs, eb.input([0.0, 1.0, 0.0, 0.0])).value(), expected(np.eye(N)[1]))
        np.testing.assert_allclose(eb.cross_entropy(xs, eb.array(P)).value(), expected(P))
        with pytest.raises(eb.EdBatchError, match=r"eb\.array\(x\).* distribution for each of 4"):
            eb.cross_entropy(xs, given(P))
