"""Expressions and parameters as numbers, as conditions, and in the hands of Python and NumPy."""

import inspect
import math
import operator

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.expression import Expression


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
    for wrong in (x, W):
        for read in (float, int, lambda e: e.item(), "{:.2f}".format):
            with pytest.raises(eb.EdBatchError, match="expected one entry, there are"):
                read(wrong)


def test_sizes(values):
    s, x, W = values
    assert (len(x), x.ndim, x.size, x.shape, x.dtype) == (2, 1, 2, (2,), np.float32)
    assert (len(W), W.ndim, W.size) == (2, 2, 4)
    assert (s.ndim, s.size) == (0, 1)
    for nothing in (len, list, iter):
        with pytest.raises(eb.EdBatchError, match="expected at least one axis"):
            list(nothing(s)) if nothing is iter else nothing(s)
    assert [row.tolist() for row in W] == [[1.0, 2.0], [3.0, 4.0]]
    a, b = x
    assert (float(a), float(b)) == (1.0, 2.0)


NUMPY = {
    "asarray": np.asarray,
    "array": lambda e: np.array([e, e]),
    "float array": lambda e: np.array([e], float),
    "stack": lambda e: np.stack([e, e]),
    "concatenate": lambda e: np.concatenate([e, e]),
    "sum": np.sum,
    "mean": np.mean,
    "> ": np.max,
    "dot": lambda e: np.dot(e, e),
    "reshape": lambda e: np.reshape(e, (1, -1)),
    "linalg.norm": np.linalg.norm,
    "zeros_like": np.zeros_like,
    "isnan": np.isnan,
    "tanh": np.tanh,
    "hypot": lambda e: np.hypot(np.ones(2), e),
    "add at": lambda e: np.add.at(np.ones(2), [0], e),
    "where": lambda e: np.add(np.ones(2), e, where=[True, False]),
    "allclose": lambda e: np.allclose(e, 1),
    "in place": lambda e: np.ones(2).__iadd__(e),
    "full": lambda e: np.full(2, e),
    "assignment": lambda e: np.zeros((2, 2)).__setitem__(0, e),
}


@pytest.mark.parametrize("function", NUMPY.values(), ids=NUMPY.keys())
def test_numpy_makes_no_array_of_it(values, function):
    for operand in values[1:]:
        with pytest.raises(eb.EdBatchError, match=r"value\(\)"):
            function(operand)


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


def test_comparison_and_truth(values):
    s, x, W = values
    y = eb.tanh(x)
    assert x in [x]
    assert len({x, y, s}) == 3
    assert {x: 1}[x] == 1
    for compare in (
        lambda: x == y,
        lambda: x != y,
        lambda: x == None,  # noqa: E711
        lambda: x in [y],
        lambda: [x, y].index(y),
        lambda: 1.0 in x,
        lambda: x == np.ones(2),
        lambda: np.ones(2) == x,
    ):
        with pytest.raises(eb.EdBatchError, match="== of an expression"):
            compare()
    for operand in values:
        for test in (bool, lambda e: not e, lambda e: e and 1, lambda e: 1 if e else 2):
            with pytest.raises(eb.EdBatchError, match="not known before it runs"):
                test(operand)
    assert W in [W]


MISSING = {
    "// of": lambda e: e // 2,
    "// ": lambda e: 2 // e,
    "% of": lambda e: e % 2,
    "% ": lambda e: 2 % e,
    "divmod": lambda e: divmod(e, 2),
    "divmod of": lambda e: divmod(2, e),
    "&": lambda e: e & 1,
    "| of": lambda e: 1 | e,
    "^": lambda e: e ^ e,
    "~": lambda e: ~e,
    "<<": lambda e: e << 1,
    ">>": lambda e: 1 >> e,
    "=": lambda e: e.__setitem__(0, 1.0),
    "del": lambda e: e.__delitem__(0),
    "np.floor_divide": lambda e: np.ones(2) // e,
    "np.remainder": lambda e: np.float64(2) % e,
    "expected eb.tanh": np.tanh,
    "np.hypot": lambda e: np.hypot(e, e),
}


@pytest.mark.parametrize("sign", MISSING)
def test_operators_that_are_missing(values, sign):
    """Both are an EdBatchError, and the TypeError that Python would raise."""
    for operand in values:
        with pytest.raises(
            eb.EdBatchError, match=sign.partition(" of an")[0].strip().replace("|", r"\|").replace("^", r"\^")
        ) as seen:
            MISSING[sign](operand)
        assert isinstance(seen.value, TypeError)
        assert "Python" not in str(seen.value)
        assert "value()" in str(seen.value) or "eb.stack" in str(seen.value)


def test_every_operator_of_python_is_there_or_says_what_to_write():
    """Those of the module `operator`, and what converts numbers."""
    names = {name for name in dir(operator) if name.startswith("__") and callable(getattr(operator, name))}
    names -= {"__call__", "__concat__", "__contains__", "__index__", "__not__", "__inv__"}
    names = {name for name in names if not (name.startswith("__i") and name != "__invert__")}  # `x += 1` is `x = x + 1`
    names -= {name for name in dir(operator) if hasattr(object, name) and name not in dir(int)}
    two = {"add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "and", "or", "xor", "lshift", "rshift"}
    names |= {f"__r{name}__" for name in (*two, "matmul")} | {"__divmod__", "__round__", "__trunc__", "__float__"}
    names -= {"__loader__", "__build_class__"}
    for kind in (Expression, eb.Parameter):
        assert [name for name in sorted(names) if not hasattr(kind, name)] == []


def test_decisions_in_cells():
    @eb.cell
    def decides(x):
        return x if x > 0 else -x

    with eb.Graph(), pytest.raises(eb.EdBatchError, match="must be a keyword-only parameter"):
        decides(eb.scalar(1.0))


def test_rounded_numbers(values):
    s, x, _ = values
    assert (round(s), round(s * 1.001, 2), math.trunc(s), math.floor(s), math.ceil(s)) == (2, 2.5, 2, 2, 3)
    with pytest.raises(eb.EdBatchError, match="expected one entry"):
        round(x)


def test_a_parameter_is_equal_to_itself_only():
    model = eb.ParameterCollection()
    W, b = model.add_parameters((2, 2), name="W"), model.add_parameters((2, 2), name="b")
    assert W == W
    assert b != W
    assert [W, b].index(b) == 1
    assert W not in [b, None, "W"]
    assert {W: 1, b: 2}[b] == 2
    with eb.Graph():
        x = eb.ones((2, 2))
        for other in (3, 2.5, np.float32(1), W.value(), [[1, 2], [3, 4]], x):
            for compare in (W.__eq__, W.__ne__, lambda v: v == W):
                with pytest.raises(eb.EdBatchError, match="== of"):
                    compare(other)


NUMBERS_OF_A_TYPE = {
    "leaky_relu": lambda x, s: eb.leaky_relu(x, s),
    "elu": lambda x, s: eb.elu(x, s),
    "clip": lambda x, s: eb.clip(x, -1, s),
    "clip high": lambda x, s: eb.clip(x, high=s),
    "scale_gradient": lambda x, s: eb.scale_gradient(x, s),
    "hinge": lambda x, s: eb.hinge(x, 0, s),
    "huber": lambda x, s: eb.huber(x, x, s),
    "layer_norm": lambda x, s: eb.layer_norm(x, x, x, s),
    "dropout": lambda x, s: eb.dropout(x, s),
    "label_smoothing": lambda x, s: eb.cross_entropy(x, 1, s),
}


@pytest.mark.parametrize("function", NUMBERS_OF_A_TYPE.values(), ids=NUMBERS_OF_A_TYPE.keys())
def test_an_expression_is_not_read_where_a_number_belongs(values, function):
    """`float(x)` works, and would run the graph and cut the gradient off, silently."""
    _, x, _ = values
    s = x[0] * 0.5
    with pytest.raises(eb.EdBatchError, match="expected a number, got Expression"):
        function(x, s)
    assert x.graph.report().nodes == 0


def test_while_traced():
    @eb.cell
    def reads(h):
        return h * float(h[0])

    with eb.Graph(), pytest.raises(eb.EdBatchError, match="reads a value"):
        reads(eb.ones(2))


def test_signatures():
    for kind in (eb.Expression, eb.Parameter, eb.LookupParameters):
        inspect.signature(kind)
        for name, member in inspect.getmembers(kind, callable):
            if not name.startswith("_"):
                assert inspect.signature(member), name
                assert inspect.getdoc(member), name
