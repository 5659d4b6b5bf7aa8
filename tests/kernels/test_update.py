import numpy as np
import pytest

from edbatch.kernels.rule import Rule
from edbatch.kernels.update import update
from tests.kernels.updates import RULES, expected, operands


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", RULES)
def test_updates_mean_what_rules_say(name, dtype):
    rule = RULES[name]
    for n, width, rows in ((1, 1, [0]), (1, 1000, [0]), (3, 5, None), (9, 33, [0, 3, 8]), (50, 64, [7, 49, 2])):
        at = np.arange(n) if rows is None else np.array(rows)
        p, g, state, constants = operands(rule, n, width, at, dtype)
        wide = [array.astype(np.float64) for array in (p, g, state)]
        want = expected(rule, *wide, at, constants)
        update(rule, p, g, state, None if rows is None else at, constants)
        rtol, atol = (3e-6, 1e-6) if dtype == np.float32 else (1e-13, 1e-15)
        np.testing.assert_allclose(p, want[0], rtol=rtol, atol=atol)
        np.testing.assert_allclose(state, want[1], rtol=rtol, atol=atol)
        others = np.setdiff1d(np.arange(n), at)
        np.testing.assert_array_equal(p[others], want[0][others])
        np.testing.assert_array_equal(state[others], want[1][others])


def test_constants_are_rounded_to_the_arrays_dtype():
    rule = Rule((), ("c",), "p = c + (p - p) * g")
    for dtype in (np.float32, np.float64):
        p = np.zeros((1, 3), dtype)
        update(rule, p, p.copy(), np.empty((1, 0, 3), dtype), None, [0.1])
        np.testing.assert_array_equal(p, np.full((1, 3), 0.1, dtype))


def test_nan_is_passed_on_and_stays_in_its_entry():
    rule = Rule(
        ("most", "least"), ("c",), "most = maximum(most, g); least = minimum(least, g); p = p + c * (most + least)"
    )
    values = np.array([np.nan, -np.inf, -1, 0, 2, np.inf])
    left, right = (grid.ravel() for grid in np.meshgrid(values, values))
    for dtype in (np.float32, np.float64):
        state = np.stack([left, left])[None].astype(dtype)
        p = np.zeros((1, len(left)), dtype)
        update(rule, p, right[None].astype(dtype), state, None, [1.0])
        np.testing.assert_array_equal(state[0], [np.maximum(left, right), np.minimum(left, right)])
