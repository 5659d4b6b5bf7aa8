"""Messages name what was called, and what was wrong with it."""

import re

import pytest

import edbatch as eb
from edbatch.graph.fast import unary
from edbatch.graph.op import OPS, Op, declare
from edbatch.kernels.language.functions import FUNCTIONS, Function

IMAGE, WEIGHT = ((1, 4, 4), (1, 1, 2, 2))


def mixed():
    return [eb.ones(2), eb.ones(1)]


CALLS = {
    "one_hot: index 3 is out of range for 3 entries": lambda: eb.one_hot(3, 3),
    "max([...]): expected expressions of one shape, got [2] at 0 and [1] at 1": lambda: eb.max(
        [eb.ones(2), eb.ones(1)]
    ),
    "min([...]): expected expressions of one shape": lambda: eb.min(mixed()),
    "sum([...]): expected expressions of one shape": lambda: eb.sum(mixed()),
    "maximum([...]): expected expressions of one shape": lambda: eb.maximum(mixed()),
    "minimum([...]): expected expressions of one shape": lambda: eb.minimum(mixed()),
    "max([]): expected at least one expression": lambda: eb.max([]),
    "stride: expected an integer, or 2, got 1.5": lambda: eb.conv2d(eb.ones(IMAGE), eb.ones(WEIGHT), stride=1.5),
    "stride: expected an integer, got 1.5": lambda: eb.conv1d(eb.ones((1, 4)), eb.ones((1, 1, 2)), stride=1.5),
    "k: expected an integer, got 2.0": lambda: eb.top_k(eb.ones(3), 2.0),
    "expected a shape of integers, got 2.0": lambda: eb.zeros(2.0),
}


@pytest.mark.parametrize("message", CALLS)
def test_what_was_called(message):
    with eb.Graph(), pytest.raises(eb.EdBatchError, match=re.escape(message)) as found:
        CALLS[message]()
    assert str(found.value).startswith(message) or message.startswith(("stride", "k:", "expected"))


def test_a_list_of_two_dtypes():
    wide = eb.ParameterCollection(dtype="float64").add_parameters(2)
    message = r"sum\(\[...\]\): expected expressions of one dtype, got float32 at 0 and float64 at 1"
    with eb.Graph(), pytest.raises(eb.EdBatchError, match=message):
        eb.sum([eb.ones(2), wide])


@pytest.fixture
def arc_tangent(monkeypatch):
    """A function that has only the C library's name."""
    monkeypatch.setitem(FUNCTIONS, "arc", Function(("x",), library="atan", costly=True))
    before = dict(OPS)
    yield unary(declare(Op("arc_tangent", lambda shape: shape, elementwise=True, scalar="arc(x)")))
    OPS.clear()
    OPS.update(before)


@pytest.mark.cpu
def test_a_function_that_float32_does_not_have(arc_tangent):
    with eb.Graph(dtype="float64"):
        y = arc_tangent(eb.input([1.0]))
    assert abs(y.value()[0] - 0.7853981633974483) < 1e-15
    with eb.Graph():
        y = arc_tangent(eb.input([1.0]))
    with pytest.raises(
        eb.EdBatchError, match=r"the function 'arc' on the CPU: expected one with `single` or `meaning`"
    ):
        y.value()
