"""Kernels for the CPU: what NumPy makes of them, whatever they are."""

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from edbatch.kernels.language.build import Builder
from edbatch.kernels.language.ir import NEXT, RUN, SAME, Constant, Kernel, Load, Place, Store
from tests.kernels.language.calls import on_cpu, run
from tests.kernels.language.interpreter import Call, Rows, interpret
from tests.kernels.language.random_kernels import Maker, copied


def check(kernel, call, run_it, exact):
    """What a kernel leaves in memory is what the interpreter leaves."""
    want, got = copied(call), copied(call)
    interpret(kernel, want)
    run_it(kernel, got)
    for wanted, found in zip(want.places, got.places, strict=True):
        if exact:
            np.testing.assert_array_equal(found.memory, wanted.memory, err_msg=repr(kernel))
        else:
            tolerance = 2e-5 if kernel.dtype == "float32" else 1e-12
            np.testing.assert_allclose(found.memory, wanted.memory, tolerance, tolerance, err_msg=repr(kernel))


@settings(max_examples=40, phases=[Phase.generate], deadline=None)
@given(st.integers(0, 2**32), st.booleans(), st.sampled_from(["float32", "float64"]))
def test_random_kernels(seed, exact, dtype):
    kernel, call = Maker(np.random.default_rng(seed), exact, dtype).make()
    check(kernel, call, on_cpu, exact)


def softmax(dtype="float32", axes=1):
    """Over the last axis, or over the first of two."""
    make = Builder()
    outer, inner = ((), (NEXT,)) if axes == 1 else ((NEXT,), (RUN,))
    x = make.add(Load(0, (*outer, *inner)))
    top = make.reduce("max", x)
    power = make.compute("exp", make.compute("subtract", x, top))
    value = make.compute("divide", power, make.reduce("sum", power))
    store = Store(value, 1, (*outer, *inner))
    return Kernel(len(outer), 1, (Place(), Place()), make.instructions, (store,), dtype=dtype)


@pytest.mark.parametrize("function", ["max", "min", "first"])
@pytest.mark.parametrize("count", [1, 5, 64, 100])
def test_nan_and_ties(function, count):
    """NaN goes into the largest and smallest; of equals the first is named."""
    make = Builder()
    x = make.add(Load(0, (NEXT,)))
    value = make.reduce("max" if function == "first" else function, x)
    if function == "first":
        value = make.reduce("first", make.compute("alike", x, value))
    kernel = Kernel(0, 1, (Place(), Place()), make.instructions, (Store(value, 1, (SAME,)),))
    random = np.random.default_rng(count)
    rows = random.integers(-3, 4, (20, count)).astype(np.float32)
    rows[3, random.integers(count)] = np.nan
    rows[4] = -np.inf
    rows[5] = np.inf
    out = np.zeros(20, np.float32)
    on_cpu(kernel, Call(20, [count], [Rows(rows.ravel(), 0, count), Rows(out, 0, 1)]))
    want = {"max": np.max, "min": np.min, "first": np.argmax}[function](rows, axis=1)
    np.testing.assert_array_equal(out, want)


def test_an_entry_may_be_stored_where_it_was_loaded():
    """In every pass over a group, too."""
    random = np.random.default_rng(0)
    x = random.normal(size=(5, 70)).astype(np.float32)
    wanted = np.exp(x - x.max(1, keepdims=True))
    wanted /= wanted.sum(1, keepdims=True)
    on_cpu(softmax(), Call(5, [70], [Rows(x.reshape(-1), 0, 70), Rows(x.reshape(-1), 0, 70)]))
    np.testing.assert_allclose(x, wanted, rtol=3e-6)


@pytest.mark.parametrize("value", [0.1, -0.0, 1e-45, 3.4028235e38, -np.inf, np.nan, 16777217.0, 1e-50, 1e300])
def test_numbers_are_exact(value):
    kernel = Kernel(1, 0, (Place(), Place()), (Constant(float(value).hex()),), (Store(0, 1, (NEXT,)),))
    got = run(kernel, np.zeros(3, np.float32))
    with np.errstate(over="ignore"):
        want = np.full(3, value, np.float32)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
