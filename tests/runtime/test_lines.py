"""Under `trace_lines`, what goes wrong in a run names the user's file and line."""

import sys

import numpy as np
import pytest

import edbatch as eb


def here():
    """The line of the call."""
    frame = sys._getframe(1)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


@pytest.fixture
def graph():
    with (
        eb.options(trace_lines=True),
        np.errstate(all="ignore"),
        eb.Graph(policy="sufficient", check_nan=True, dtype="float64") as made,
    ):
        yield made


def raises(match):
    return pytest.raises(eb.EdBatchError, match=match)


def test_one_of_a_batch_with_other_nodes(graph):
    xs = [eb.input([float(i), 1.0]) for i in range(-3, 4)]
    good = [eb.log(x) for x in xs[4:]]
    bad, line = eb.log(xs[0]), here()
    with raises(r"NaN in a result of log\(\[2\]\) \(1 of 4 in its batch\), recorded at ") as caught:
        eb.sum([*good, bad]).value()
    assert str(caught.value).endswith(f"recorded at {line}")


def test_fast_and_careful_ways_and_views(graph):
    """Every way of recording appends a line: constants, look-ups, lists, cells, methods, operators."""
    table = eb.ParameterCollection(dtype="float64").add_lookup_parameters((3, 2), init=np.nan)
    ways = [
        lambda x: x + np.nan, lambda x: x * x, lambda x: eb.sum([x, x]), lambda x: eb.concatenate([x, x]),
        lambda x: x.tanh(), lambda x: eb.softmax(x), lambda x: eb.pick(x, 0), lambda x: x[0] + 1.0,
        lambda x: eb.affine(np.ones((2, 2)), x, x), lambda x: np.ones((1, 2)) @ x, lambda x: eb.cross_entropy(x, 1),
    ]  # fmt: skip
    for number, way in enumerate(ways):
        for again in range(2):
            with eb.Graph(policy="none", check_nan=True, dtype="float64"):
                x = eb.input([np.nan, 1.0])
                y, line = way(x), f"{__file__}:{way.__code__.co_firstlineno}"
                with raises("NaN in a result of") as caught:
                    y.value()
            assert f"recorded at {line}" in str(caught.value), (number, again)
    x, line = table[1], here()
    with raises("lookup") as caught:
        x.value()
    assert line in str(caught.value)


def test_cells_name_the_call_and_split_cells_too(graph):
    model = eb.ParameterCollection(dtype="float64")
    W, U = (model.add_parameters((2, 2), init=np.eye(2)) for _ in range(2))

    @eb.cell
    def step(h, x):
        return eb.tanh(W @ eb.log(x) + U @ h)

    h, lines = eb.zeros(2), []
    for i in range(4):
        h, line = step(h, eb.input([1.0, -1.0 if i == 2 else 1.0])), here()
        lines.append(line)
    with raises("recorded at") as caught:
        h.value()
    assert str(caught.value).endswith(lines[2])


def test_backward(graph):
    x = eb.input([0.0, 1.0])
    y, line = eb.sqrt(x), here()
    loss = eb.sum(y * 0)
    with raises("NaN in the gradient of sqrt") as caught:
        loss.backward()
        x.gradient()
    assert line in str(caught.value)


def test_without_it_the_error_says_how():
    with eb.Graph(policy="sufficient", check_nan=True):
        y = eb.log(eb.input([-1.0]))
    with np.errstate(invalid="ignore"), raises(r"edbatch\.options\(trace_lines=True\)"):
        y.value()
    assert not hasattr(y.graph.types, "lines")
