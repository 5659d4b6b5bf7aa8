"""Update rules: what is no rule, and that kernels on the CPU and on an emulated GPU do what rules say."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edbatch.kernels.cpu.backend import NumPyBackend
from edbatch.kernels.cuda.backend import CudaBackend
from edbatch.training.rule import Rule
from tests.emulated.driver import EmulatedDriver
from tests.emulated.libraries import with_cpp
from tests.training.rules import RULES, evaluated, expected, operands, updated

with_nvrtc = pytest.mark.skipif(sys.platform == "darwin", reason="NVIDIA makes no compiler for macOS")

CPU = NumPyBackend()
GIVEN = ("p", "g", "a", "b", "c", "d")


@pytest.fixture(scope="module", params=["cpu", pytest.param("gpu", marks=with_cpp)])
def backend(request):
    """The CPU's, and an emulated GPU's."""
    return CPU if request.param == "cpu" else CudaBackend(EmulatedDriver())


@st.composite
def bodies(draw):
    """Assignments whose right sides read any name that has a value; the first one reads all that are given."""
    known, lines = list(GIVEN), ["first = p + g + a + b + c + d"]
    known.append("first")
    for _ in range(draw(st.integers(0, 6))):
        names = st.sampled_from(known)
        expressions = st.recursive(
            names,
            lambda inner: st.one_of(
                st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda x: f"({x[0]} {x[1]} {x[2]})"),
                inner.map(lambda x: f"-{x}"),
                inner.map(lambda x: f"sqrt(abs({x}))"),
                st.tuples(inner, inner, inner).map(lambda x: f"({x[0]} if {x[1]} > 0.25 else {x[2]})"),
            ),
            max_leaves=4,
        )
        target = draw(st.sampled_from(["p", "a", "b", "e", "f"]))
        lines.append(f"{target} = {draw(expressions)}")
        known.append(target)
    return draw(st.sampled_from(["\n", "; "])).join(lines)


@settings(max_examples=30)
@given(bodies(), st.lists(st.sampled_from([-2.0, -0.5, 0.0, 0.25, 1.0, 4.0]), min_size=6, max_size=6))
def test_the_kernel_means_what_the_body_means(body, values):
    """Names are assigned anew, and read before and after that."""
    rule = Rule(("a", "b"), ("c", "d"), body)
    before = dict(zip(GIVEN, map(np.float64, values), strict=True))
    with np.errstate(all="ignore"):
        want = evaluated(rule, before)
    p, g, a, b, *constants = values
    got, state = updated(CPU, rule, np.array([[p]]), np.array([[g]]), np.array([[[a], [b]]]), None, constants)
    for one, name in ((got[0, 0], "p"), (state[0, 0, 0], "a"), (state[0, 1, 0], "b")):
        if np.isfinite(want[name]) and abs(want[name]) < 1e12:  # elsewhere rounding decides
            np.testing.assert_allclose(one, want[name], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", RULES)
def test_updates_mean_what_rules_say(name, dtype, backend):
    """On all rows and on some; rows that are not listed stay as they are."""
    rule = RULES[name]
    for n, width, rows in ((1, 1, None), (1, 1000, [0]), (3, 5, None), (9, 33, [0, 3, 8]), (50, 64, [7, 49, 2])):
        at = np.arange(n) if rows is None else np.array(rows)
        p, g, state, constants = operands(rule, n, width, at, dtype)
        want = expected(rule, *(array.astype(np.float64) for array in (p, g, state)), at, constants)
        for long in (False, True):
            got = updated(backend, rule, p, g, state, rows, constants, long)
            rtol, atol = (3e-6, 1e-6) if dtype == np.float32 else (1e-13, 1e-15)
            for mine, theirs, before in zip(got, want, (p, state), strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=atol)
                others = np.setdiff1d(np.arange(n), at)
                np.testing.assert_array_equal(mine[others], before[others])


def test_constants_are_rounded_to_the_arrays_dtype(backend):
    rule = Rule((), ("c",), "p = c + (p - p) * g + 0.1")
    for dtype in (np.float32, np.float64):
        p = np.zeros((1, 3), dtype)
        got, _ = updated(backend, rule, p, p, np.empty((1, 0, 3), dtype), None, [0.1])
        np.testing.assert_array_equal(got, np.full((1, 3), dtype(0.1) + dtype(0.1)))


def test_nan_is_passed_on_and_stays_in_its_entry(backend):
    rule = Rule(
        ("most", "least"), ("c",), "most = maximum(most, g); least = minimum(least, g); p = p + c * (most + least)"
    )
    values = np.array([np.nan, -np.inf, -1, 0, 2, np.inf])
    left, right = (grid.ravel() for grid in np.meshgrid(values, values))
    for dtype in (np.float32, np.float64):
        state = np.stack([left, left])[None].astype(dtype)
        p = np.zeros((1, len(left)), dtype)
        _, got = updated(backend, rule, p, right[None].astype(dtype), state, None, [1.0])
        np.testing.assert_array_equal(got[0], [np.maximum(left, right), np.minimum(left, right)])
