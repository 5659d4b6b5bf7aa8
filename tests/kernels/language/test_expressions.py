"""Scalar expressions: what they mean, whoever reads them, and what is none."""

import contextlib
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edbatch.errors import EdBatchError
from edbatch.kernels.language.build import Builder
from edbatch.kernels.language.ir import NEXT, Kernel, Load, Place, Store
from tests.emulated.libraries import with_cpp
from tests.kernels.language.calls import on_gpu, pairs, run
from tests.kernels.language.test_functions import SPECIAL

EXPRESSIONS = {
    "x + 0.1": lambda x, y: x + np.float32(0.1),
    "x - -inf": lambda x, y: x + np.float32(np.inf),
    "-x": lambda x, y: -x,
    "+x": lambda x, y: x,
    "1 / x": lambda x, y: np.float32(1) / x,
    "x if x > 0 else 0.25 * x": lambda x, y: np.where(x > 0, x, np.float32(0.25) * x),
    "1 if x == x else -2": lambda x, y: np.where(np.isnan(x), -2, 1).astype(np.float32),
    "x < y": lambda x, y: (x < y).astype(np.float32),
    "(x < y) <= (y < 2)": lambda x, y: ((x < y) <= (y < 2)).astype(np.float32),
    "(x < y) + (y < 2)": lambda x, y: (x < y).astype(np.float32) + (y < 2),
    "1 if x < y and not y > 2 or x != x else 0": lambda x, y: ((x < y) & ~(y > 2) | (x != x)).astype(np.float32),
    "minimum(maximum(x, -1), 1)": lambda x, y: np.clip(x, -1, 1),
    "a = abs(x)\nb = a + 1\nb * b - a": lambda x, y: (np.abs(x) + 1) * (np.abs(x) + 1) - np.abs(x),
    "1e300": lambda x, y: np.full_like(x, np.inf),
    "x if y else -x": lambda x, y: np.where(y != 0, x, -x),
    "floor(x) / 2": lambda x, y: np.floor(x) / np.float32(2),
}


def expression(text):
    make = Builder()
    x, y = make.add(Load(0, (NEXT,))), make.add(Load(1, (NEXT,)))
    return make, make.expression(text, x=x, y=y)


def kernel_of(text):
    make, value = expression(text)
    return Kernel(1, 0, (Place(),) * 3, make.instructions, (Store(value, 2, (NEXT,)),))


@with_cpp
@pytest.mark.parametrize("text", EXPRESSIONS)
def test_they_mean_what_they_mean_in_numpy(text):
    small = SPECIAL[np.abs(SPECIAL) < 1e30]
    x, y = pairs(np.concatenate([small, [np.nan]]).astype(np.float32) if "a + 1" in text else SPECIAL)
    with np.errstate(all="ignore"):
        want = np.asarray(EXPRESSIONS[text](x, y), np.float32)
    out = np.zeros((1, len(x)), np.float32)
    on_gpu(kernel_of(text), 1, len(x), x[None], y[None], out)
    for got in (run(kernel_of(text), x, y), out[0]):
        np.testing.assert_allclose(got, want, rtol=1e-6 if "a + 1" in text else 0, atol=0)


@pytest.mark.parametrize(
    "text",
    [
        "", "x +", "x ** y", "x % y", "x // y", "~x", "x if x is y else x", "x < y < x", "x[0]", "x.real", "lambda: x",
        "(x := y)", "x, y", "x; y = 2", "x\0", "'x'", "True", "1j", "tanh(x=y)", "tanh(*x)", "math.tanh(x)",
        "import os", "x = 1", "x += 1\nx", "for i in x: x",
    ],
)  # fmt: skip
def test_what_is_no_expression_is_named(text):
    with pytest.raises(EdBatchError, match=re.escape(repr(text))):
        expression(text)


@pytest.mark.parametrize("text", ["z", "log2(x)", "tanh()", "tanh(x, x)"])
def test_what_is_not_known_is_named(text):
    make = Builder()
    with pytest.raises(EdBatchError, match=re.escape(repr(text))):
        make.expression(text, x=make.number(1))


@given(st.text(st.sampled_from("xy01 ()+-*/<=>,.if else tanhmxu\n'[]#"), max_size=30))
@settings(deadline=None)
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(EdBatchError):
        expression(text)
