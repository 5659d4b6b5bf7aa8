"""Numbers that were read and came back as constants end the gradient, and `backward` says so."""

import math
import warnings

import numpy as np
import pytest

import edbatch as eb


@pytest.fixture
def W():
    return eb.ParameterCollection(seed=0).add_parameters(2, init=[0.3, 0.4])


def is_warned(W, function):
    with eb.Graph():
        x = eb.sum(eb.tanh(W))
        loss = function(x)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loss.backward()
    assert {warning.filename for warning in caught} <= {__file__}
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (lambda x: x * float(x), "float(x) = 0.671"),
        (lambda x: x + math.exp(x), "math.exp(x) = 1.95"),
        (lambda x: x * eb.scalar(2.0) - math.log(x), "math.log(x) = -0.39"),
        (lambda x: x + eb.cell(lambda a, b: a * b)(x, math.sqrt(x)), "math.sqrt(x) = 0.81"),
        (lambda x: eb.sum(eb.array([x, x]) * float(x)), "float(x) = 0.671"),
        (lambda x: x / -float(x), "-float(x) = -0.671"),
    ],
)
def test_a_number_that_was_read(W, function, named):
    (message,) = is_warned(W, function)
    assert message.startswith(f"backward: {named}")
    assert "eb.exp(x), not math.exp(x)" in message
    assert is_warned(W, function) == []  # it is said once


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * eb.stop_gradient(x),
        lambda x: x * x.value(),
        lambda x: x * 0.5 if float(x) > 0.1234567 else x,
        lambda x: x * 0.7654321 + 0 * len(f"{float(x):.3f}"),
        lambda x: x * 0.1234567 + float(eb.sum(x) * 0.0 + 0.125) * x,  # round ones turn up by themselves
        lambda x: [x * 0.6712602376937866, float(x)][0],  # it was there before it was read
    ],
)
def test_what_is_read_for_other_reasons(W, function):
    assert is_warned(W, function) == []


def test_numbers_that_are_no_numbers(W):
    with np.errstate(all="ignore"):
        assert is_warned(W, lambda x: x + float(x * np.inf) + float(eb.log(-x))) == []
