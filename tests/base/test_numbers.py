import numpy as np
import pytest

import edbatch as eb
from edbatch.base.numbers import check_number


@pytest.mark.parametrize("value", [0, 0.5, np.float32(0.5), np.int64(0)])
def test_numbers_in_range_pass(value):
    check_number("Here", "name", value, below=1)


@pytest.mark.parametrize("value", [-1, 1, float("nan"), float("inf"), "0.5", None, 1j, [0.5]])
def test_others_do_not(value):
    with pytest.raises(eb.EdBatchError, match=r"Here: name=.*; expected a number in \[0, 1\)"):
        check_number("Here", "name", value, below=1)
