from fractions import Fraction

import numpy as np
import pytest

import edbatch as eb
from edbatch.base.numbers import checked_integer, checked_real


class Index:
    """What has an `__index__`, and nothing else that an integer has."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


@pytest.mark.parametrize(
    "value",
    [-1, 1, float("nan"), float("inf"), "0.5", None, 1j, [0.5], True, np.True_, np.array(True), np.ones(1) / 2]
    + [np.timedelta64(0, "s"), 10**400, Fraction(10**400), np.array("0.5"), -Fraction(1, 2)],
)
def test_others_are_refused(value):
    with pytest.raises(eb.EdBatchError, match=r"Here: name=.*; expected a number in \[0, 1\)"):
        checked_real("Here", "name", value, below=1)


@pytest.mark.parametrize(
    "value",
    [0, -1, True, np.True_, 2.0, "2", None, [2], np.array([2]), np.array(2.0), np.timedelta64(2, "s"), Index(0)],
)
def test_what_is_no_integer_is_refused(value):
    with pytest.raises(eb.EdBatchError, match=r"Here: name=.*; expected an integer of at least 1"):
        checked_integer("Here", "name", value)


@pytest.mark.parametrize("value", [4, 2**63, np.uint64(2**63), Index(10**5000)])
def test_what_is_too_large_is_refused(value):
    with pytest.raises(eb.EdBatchError, match=r"Here: name=.*; expected an integer of at most 3"):
        checked_integer("Here", "name", value, most=3)
