"""Kernels of whole rows against SciPy's in float64."""

import re
import sys

import numpy as np
import pytest
from scipy.special import log_softmax
from scipy.special import softmax as reference

from tests.emulated.driver import EmulatedDriver
from tests.emulated.libraries import with_cpp
from tests.kernels import nvrtc
from tests.kernels.language.calls import launch, module_of, on_cpu
from tests.kernels.language.interpreter import Call, Rows
from tests.kernels.language.random_kernels import given
from tests.kernels.softmax import softmax

with_nvrtc = pytest.mark.skipif(sys.platform == "darwin", reason="NVIDIA makes no compiler for macOS")


def rows_of(width):
    x = np.random.default_rng(width).standard_normal((7, width + 1)).astype(np.float32) * 20
    x[2, :width] += 1e4
    x[3, :width] = -np.inf
    x[4, 0] = np.nan
    x[5, 0] = np.inf
    return x


def check(x, out, width, logarithm):
    with np.errstate(invalid="ignore"):
        want = (log_softmax if logarithm else reference)(x[:, :width].astype(np.float64), axis=1)
    rows = [0, 1, 2, 6]
    # The exponent is rounded before, to a unit in the last place of the distance to the largest.
    np.testing.assert_allclose(out[rows, :width], want[rows], rtol=2e-5, atol=2e-7 * (1 + 100 * logarithm))
    assert np.isnan(out[3:5, :width]).all()
    assert np.isnan(out[5, 0])
    assert (out[:, width:] == 9).all()


def call_of(x, out, width):
    places = [Rows(x.reshape(-1), 0, width + 1), Rows(out.reshape(-1), 0, width + 2)]
    return Call(7, [width], places, columns=[0, 0])


@pytest.mark.parametrize("logarithm", [False, True])
@pytest.mark.parametrize("width", [1, 5, 100, 300])
def test_softmax(width, logarithm):
    x, out = rows_of(width), np.full((7, width + 2), 9, np.float32)
    on_cpu(softmax(logarithm), call_of(x, out, width))
    check(x, out, width, logarithm)


@with_nvrtc
@pytest.mark.parametrize("logarithm", [False, True])
def test_every_pass_reads_four_numbers_at_once(logarithm):
    """With no branch between, at which the processor would wait for each."""
    ptx, _ = nvrtc.compile_for(80, module_of({"kernel": softmax(logarithm)}))
    pieces = re.split(r"\n\$L.*:|\bbra\b", ptx[ptx.index(".entry kernel(") :])
    counts = [len(re.findall(r"ld\.global(?:\.nc)?\.f32", piece)) for piece in pieces]
    assert [count for count in counts if count] == [4, 1, 4, 1, 4, 1]


@with_cpp
@pytest.mark.parametrize("logarithm", [False, True])
@pytest.mark.parametrize("width", [1, 33, 300])
def test_softmax_on_a_gpu(width, logarithm):
    kernel = softmax(logarithm)
    (handle,) = EmulatedDriver().load(module_of({"softmax": kernel}), ["softmax"])
    for lanes, together in ((32, 8), (96, 2), (256, 1)):
        x, out = rows_of(width), np.full((7, width + 2), 9, np.float32)
        launch(handle, 7, given(kernel, call_of(x, out, width))[0], (3, 1, 1), (lanes, together))
        check(x, out, width, logarithm)
