"""What a call finds from the call before it is of this call: its values, types, graph, dtype and gradients."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.node_type import TYPES

ROWS = np.array([[0, 2, 1, 0], [1, 1, 0, 2]])
MASK = np.array([True, False, True, True])
FAR = np.array([[3.0, 0.25, -2.0, 0.5]] * 3)


def numpy_softmax(x, axis):
    power = np.exp(x - x.max(axis, keepdims=True))
    return power / power.sum(axis, keepdims=True)


def in_order(x, k):
    return np.take_along_axis(x, np.sort(np.argsort(-x, 1, kind="stable")[:, :k], 1), 1)


def put(x, index, values):
    out = x.copy()
    np.put_along_axis(out, index, values, 0)
    return out


def added(x, index, values):
    out = x.copy()
    for at, row in enumerate(index):
        for column, to in enumerate(row):
            out[to, column] += values[at, column]
    return out


def attended(x):
    return numpy_softmax(x @ x[0] / 2, 0) @ x


# Of a matrix [3, 4]: the call, and the same in NumPy.
CALLS = {
    "pad": (lambda x: eb.pad(x, 2), lambda x: np.pad(x, 2)),
    "pad a pair": (lambda x: eb.pad(x, (1, 0), 0.5), lambda x: np.pad(x, (1, 0), constant_values=0.5)),
    "pad pairs": (lambda x: eb.pad(x, ((1, 0), (0, 2))), lambda x: np.pad(x, ((1, 0), (0, 2)))),
    "pad lists": (lambda x: eb.pad(x, [[2, 0], [0, 1]]), lambda x: np.pad(x, [[2, 0], [0, 1]])),
    "pad with nothing": (lambda x: eb.pad(x, 0), lambda x: x),
    "top_k": (lambda x: eb.top_k(x, 2, 0)[0], lambda x: np.sort(x, 0)[::-1][:2]),
    "k_max_pool": (lambda x: eb.k_max_pool(x, 3), lambda x: in_order(x, 3)),
    "gather lists": (lambda x: eb.gather(x, ROWS.tolist(), 0), lambda x: np.take_along_axis(x, ROWS, 0)),
    "gather int32": (lambda x: eb.gather(x, ROWS.astype("int32"), 0), lambda x: np.take_along_axis(x, ROWS, 0)),
    "gather from the end": (lambda x: eb.gather(x, ROWS - 3, 0), lambda x: np.take_along_axis(x, ROWS, 0)),
    "gather what is large": (lambda x: eb.gather(x, [[3] * 40] * 3, 1), lambda x: np.repeat(x[:, 3:], 40, 1)),
    "gather, an expression": (
        lambda x: eb.gather(x, eb.argmax(x, 0, True), 0), lambda x: x.max(0, keepdims=True),
    ),
    "scatter": (lambda x: eb.scatter(x, ROWS[:1], x[1:2] * 2, 0), lambda x: put(x, ROWS[:1], x[1:2] * 2)),
    "scatter_add": (lambda x: eb.scatter_add(x, ROWS, x[:2], 0), lambda x: added(x, ROWS, x[:2])),
    "x[list]": (lambda x: x[[2, 0, 0]], lambda x: x[[2, 0, 0]]),
    "x[0][array]": (lambda x: x[0][np.array([-1, 2])], lambda x: x[0][[-1, 2]]),
    "x[0][mask]": (lambda x: x[0][MASK], lambda x: x[0][MASK]),
    "x[:, list]": (lambda x: x[:, [3, -3, 0]], lambda x: x[:, [3, -3, 0]]),
    "x[1, list]": (lambda x: x[1, [3, 0]], lambda x: x[1, [3, 0]]),
    "x[:, mask]": (lambda x: x[:, MASK], lambda x: x[:, MASK]),
    "x.T[1:3, list]": (lambda x: x.T[1:3, [2, 0]], lambda x: x.T[1:3, [2, 0]]),
    "x[list, None, 1]": (lambda x: x[[2, 0], None, 1], lambda x: x[[2, 0], None, 1]),
    "x[None, list, 1:]": (lambda x: x[None, [2, 0], 1:], lambda x: x[None, [2, 0], 1:]),
    "one_hot": (lambda x: x[0, 1] * eb.one_hot(-2, 5), lambda x: x[0, 1] * np.eye(5)[3]),
    "one_hot of a list": (lambda x: x[0, 1] * eb.one_hot([0, -1], 3), lambda x: x[0, 1] * np.eye(3)[[0, 2]]),
    "one_hot of an array": (lambda x: x[0, 1] * eb.one_hot(ROWS, 3), lambda x: x[0, 1] * np.eye(3)[ROWS]),
    "sum of axes": (lambda x: eb.sum(x, (0, 1)), lambda x: x.sum()),
    "mean of listed axes": (lambda x: eb.mean(x, [0, 1], True), lambda x: x.mean(keepdims=True)),
    "softmax along NumPy's axis": (lambda x: eb.softmax(x, np.int64(0)), lambda x: numpy_softmax(x, 0)),
    "scale_gradient": (lambda x: eb.scale_gradient(x, 1.0), lambda x: x),
    "hinge": (
        lambda x: eb.hinge(x[0], 1, 0.5), lambda x: np.maximum(0, x[0, [0, 2, 3]] - x[0, 1] + 0.5).sum(),
    ),
    "huber": (
        lambda x: eb.huber(x, FAR, 0.5),
        lambda x: np.where(abs(x - FAR) <= 0.5, (x - FAR) ** 2 / 2, 0.5 * (abs(x - FAR) - 0.25)).sum(),
    ),
    "split": (lambda x: eb.concatenate(eb.split(x, [3, 1], 1)[::-1], 1), lambda x: x[:, [3, 0, 1, 2]]),
    "reshape": (lambda x: eb.reshape(x, [2, -1]), lambda x: x.reshape(2, -1)),
    "transpose": (lambda x: eb.transpose(x, [1, 0]), lambda x: x.T),
    "softmax of a list": (lambda x: eb.stack(eb.softmax(list(x))), lambda x: numpy_softmax(x, 0)),
    "softmax of numbers": (lambda x: eb.stack(eb.softmax(list(x[1]))), lambda x: numpy_softmax(x[1], 0)),
    "dots": (lambda x: eb.stack(eb.dots(x[0], list(x))), lambda x: x @ x[0]),
    "weighted_sum": (lambda x: eb.weighted_sum(list(x[:, 0]), list(x)), lambda x: x[:, 0] @ x),
    "attention": (lambda x: eb.attention(x[0], x, list(x)), attended),
    "where a number": (lambda x: eb.where(x > 0.3, x, -0.5), lambda x: np.where(x > 0.3, x, -0.5)),
    "where an array": (lambda x: eb.where(MASK, x, FAR), lambda x: np.where(MASK, x, FAR)),
    "stacks": (
        lambda x: x.reshape(3, 2, 2) @ x.reshape(3, 2, 2), lambda x: x.reshape(3, 2, 2) @ x.reshape(3, 2, 2),
    ),
    "cross_entropy of an array": (
        lambda x: eb.cross_entropy(x[0], np.array([0.5, 0, 0.5, 0])),
        lambda x: -np.log(numpy_softmax(x[0], 0))[[0, 2]].mean(),
    ),
    "cross_entropy, smoothed": (
        lambda x: eb.cross_entropy(x[0], 2, 0.1),
        lambda x: -np.log(numpy_softmax(x[0], 0)) @ [0.025, 0.025, 0.925, 0.025],
    ),
}  # fmt: skip


def matrices(seed):
    random = np.random.default_rng(seed)
    return [random.uniform(-1, 1, (3, 4)) for _ in range(3)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CALLS)
def test_every_call_computes_of_its_own_operands(name, dtype):
    call, expected = CALLS[name]
    cell = eb.cell(call)
    for seed in (0, 1):
        given = matrices(seed)
        with eb.Graph(policy="sufficient", dtype=dtype):
            xs = [eb.input(x) for x in given]
            found = eb.forward([f(x) for f in (call, call, cell, cell) for x in xs])
        for at, value in enumerate(found):
            right = expected(given[at % len(given)])
            assert value.dtype == dtype
            assert value.shape == np.shape(right)
            np.testing.assert_allclose(value, right, rtol=2e-5 if dtype == "float32" else 1e-12, atol=1e-6)


@pytest.mark.parametrize("inside", [False, True], ids=["graph", "cell"])
@pytest.mark.parametrize("name", CALLS)
def test_gradients_flow_where_this_call_lets_them(name, inside):
    """Of three calls, the one in the middle reads x stopped: x has the gradient of the two others."""
    call, expected = CALLS[name]
    f = eb.cell(call) if inside else call
    array = matrices(7)[0]
    weights = np.random.default_rng(3).uniform(0.5, 1.5, np.shape(expected(array)))
    with eb.Graph(policy="sufficient", dtype="float64"):
        x = eb.input(array)
        calls = [f(x), f(eb.stop_gradient(x)), f(x)]
        loss = eb.sum([eb.sum(factor * y * weights) for factor, y in zip((1.0, 10.0, 2.0), calls, strict=True)])
        loss.backward()
        gradient = x.gradient()
    numeric = np.zeros_like(array)
    for at in np.ndindex(array.shape):
        step = np.zeros_like(array)
        step[at] = 1e-6
        numeric[at] = 3 * ((expected(array + step) - expected(array - step)) * weights).sum() / 2e-6
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-6)


WRONG = {
    "pad": (lambda x: eb.pad(x, 1), lambda x: eb.pad(x, 1.0)),
    "pad, pairs": (lambda x: eb.pad(x, ((1, 0), (0, 1))), lambda x: eb.pad(x, ((1, 0), (0, 1.0)))),
    "pad, too many": (lambda x: eb.pad(x, ((1, 0), (0, 1))), lambda x: eb.pad(x, ((1, 0), (0, 1), (1, 1)))),
    "top_k": (lambda x: eb.top_k(x, 2), lambda x: eb.top_k(x, 2.0)),
    "axis of top_k": (lambda x: eb.top_k(x, 2, 1), lambda x: eb.top_k(x, 2, 1.0)),
    "k_max_pool": (lambda x: eb.k_max_pool(x, 1, 1), lambda x: eb.k_max_pool(x, 1, 2)),
    "axis of gather": (lambda x: eb.gather(x, ROWS, 0), lambda x: eb.gather(x, ROWS, 0.0)),
    "floats": (lambda x: eb.gather(x, ROWS, 0), lambda x: eb.gather(x, ROWS.astype(float), 0)),
    "too large": (lambda x: eb.gather(x, ROWS, 0), lambda x: eb.gather(x, ROWS + 1, 0)),
    "too small": (lambda x: eb.scatter(x, ROWS, x[:2], 0), lambda x: eb.scatter(x, ROWS - 4, x[:2], 0)),
    "shape": (lambda x: eb.scatter(x, ROWS, x[:2], 0), lambda x: eb.scatter(x, ROWS, x[0], 0)),
    "size of one_hot": (lambda x: eb.one_hot(1, 3), lambda x: eb.one_hot(1, 3.0)),
    "integer of one_hot": (lambda x: eb.one_hot(1, 3), lambda x: eb.one_hot(True, 3)),
    "one_hot too large": (lambda x: eb.one_hot([1, 2], 3), lambda x: eb.one_hot([1, 3], 3)),
    "list": (lambda x: x[[0, 1]], lambda x: x[[0, 3]]),
    "list of floats": (lambda x: x[[0, 1]], lambda x: x[[0.0, 1.0]]),
    "second list": (lambda x: x[:, [0, 1]], lambda x: x[:, [0, 4]]),
    "two lists": (lambda x: x[:, [0, 1]], lambda x: x[[0, 1], [0, 1]]),
    "listed axes": (lambda x: eb.sum(x, [0, 1]), lambda x: eb.sum(x, [0, 1.0])),
    "nested axes": (lambda x: eb.sum(x, (0, 1)), lambda x: eb.sum(x, ((0,), (1,)))),
    "listed sizes": (lambda x: eb.split(x, [1, 3], 1), lambda x: eb.split(x, [1.0, 3], 1)),
    "margin": (lambda x: eb.hinge(x[0], 1), lambda x: eb.hinge(x[0], 1, "1")),
    "label": (lambda x: eb.hinge(x[0], 1), lambda x: eb.hinge(x[0], 4)),
    "delta": (lambda x: eb.huber(x, x), lambda x: eb.huber(x, x, 0.0)),
    "lengths": (lambda x: eb.weighted_sum(x[0], x.T), lambda x: eb.weighted_sum(x[0], x)),
    "sizes of dots": (lambda x: eb.dots(x[0], x), lambda x: eb.dots(x[:, 0], x)),
    "bias": (
        lambda x: eb.conv1d(x, eb.ones((2, 3, 2)), padding=[1]),
        lambda x: eb.conv1d(x, eb.ones((2, 3, 2)), "1", padding=[1]),
    ),
    "rate": (lambda x: eb.dropout(x, 0.5), lambda x: eb.dropout(x, 1.0)),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_refused_after_what_is_right(name):
    right, wrong = WRONG[name]
    with eb.Graph(policy="sufficient"):
        x = eb.input(matrices(0)[0])
        right(x), right(x)
        with pytest.raises(eb.EdBatchError):
            wrong(x)
        right(x)
        assert x.value().shape == (3, 4), "the graph is whole"


def test_numbers_of_both_signs_and_truth_values_are_told_apart():
    with eb.Graph(policy="sufficient") as graph:
        x = eb.input([1.0])
        padded = [eb.pad(x, 1, fill) for _ in range(2) for fill in (0.0, -0.0, 0, 1, True, 1.0)]
        assert len({graph.types[y.id] for y in padded}) == 3  # 1 and 1.0 are one number to the op, as True is
        values = eb.forward(padded)
    assert [bool(np.signbit(value[0])) for value in values[:3]] == [False, True, False]
    for first, second in zip(values[:6], values[6:], strict=True):
        assert first.tobytes() == second.tobytes()


def test_expressions_of_another_graph_are_refused():
    with eb.Graph(policy="sufficient"):
        stranger = eb.input(ROWS[0] * 0.5)
        number = eb.input(0.5)
    with eb.Graph(policy="sufficient"):
        x = eb.input(ROWS[1] * 0.5)
        forms = [
            lambda y: eb.huber(x, y), lambda y: eb.where(x, y, 0.5), lambda y: eb.scatter(x, [0, 1, 2, 3], y, 0),
            lambda y: eb.dots(x, [y]), lambda y: eb.dots(y, [x]), lambda y: eb.softmax([x, y]),
            lambda y: eb.gather(x, y, 0),
        ]  # fmt: skip
        for form in forms:
            form(x), form(x)
            with pytest.raises(eb.EdBatchError, match="another graph"):
                form(stranger)
        weight = eb.input(1.0)
        eb.weighted_sum([weight], [x])
        with pytest.raises(eb.EdBatchError, match="another graph"):
            eb.weighted_sum([number], [x])
        assert x.value().shape == (4,)


@pytest.mark.parametrize("size", [13, 17])
def test_a_cell_may_be_the_first_to_call(size):
    """It is traced twice, the careful way and the quick one: both record the same nodes."""
    row = np.linspace(0.1, 0.9, size)
    calls = [
        lambda x: eb.where(row, x, 0.5), lambda x: eb.where(x, 0.5, row), lambda x: eb.huber(x, row),
        lambda x: eb.huber(row, x, 0.25), lambda x: eb.gather(x, [1, 2], 0), lambda x: x[[2, 1]], lambda x: x + row,
        lambda x: eb.scatter(x, [1], row[:1], 0), lambda x: eb.pad(x, [1, 2]), lambda x: eb.top_k(x, 2)[0],
        lambda x: eb.stack(eb.softmax([x, row])), lambda x: eb.stack(eb.dots(x, [x, row])),
        lambda x: eb.layer_norm(x, row, row), lambda x: eb.one_hot([1, 2], size), lambda x: eb.hinge(x, 1, 0.3),
        lambda x: eb.attention(x, [x, row], [x, x]), lambda x: eb.weighted_sum([x[0], 0.5], [x, row]),
        lambda x: x[None, [0, 1]], lambda x: eb.cross_entropy(x, 1, 0.3), lambda x: eb.split(x, [1, size - 1])[1],
    ]  # fmt: skip
    with eb.Graph(policy="sufficient"):
        x = eb.input(row[::-1])
        inside = [eb.cell(call)(x) for call in calls]
        for a, b in zip(eb.forward(inside), eb.forward([call(x) for call in calls]), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_lists_that_differ_in_what_they_hold_are_one_type():
    """Else what is remembered would grow with every sample."""
    with eb.Graph(policy="sufficient"):
        x = eb.input(matrices(0)[0])

        def calls(a, b):
            index = [[a, b, a, b]]
            return x[[a, b]], x[:, [a, b]], eb.gather(x, index, 0), eb.one_hot(a, 3), eb.one_hot([a, b], 3), index

        calls(0, 1)
        before = TYPES.made
        for a in range(3):
            for b in range(3):
                calls(a, b)
        assert TYPES.made == before


def test_a_list_of_expressions_is_no_operand():
    """Though it knows the shape of its entries."""
    with eb.Graph(policy="sufficient"):
        x = eb.input([1.0, 2.0])
        xs = eb.ExpressionList([x, x])
        for call in (eb.tanh, eb.sin, lambda x: eb.add(x, x), lambda x: eb.pick(x, 0), lambda x: eb.elu(x)):
            call(x)
            with pytest.raises(eb.EdBatchError, match="got ExpressionList"):
                call(xs)
        assert eb.sum(xs).value().tolist() == [2, 4]


def test_nodes_that_are_recorded_at_once_have_lines():
    with eb.options(trace_lines=True), eb.Graph(policy="sufficient") as graph:
        xs = [eb.input([1.0, 2.0]), eb.input([3.0, 4.0])]
        eb.softmax(xs), eb.dots(xs[0], xs)
        assert len(graph.types.lines) == len(graph.types) == graph.n
        assert all(line.startswith(__file__) for line in graph.types.lines)
