"""Calls of many kernels, and sums of squares, in one compiled call; as Python reads them, too."""

from contextlib import nullcontext

import numpy as np
import pytest

from edbatch.compiling.compiled import at_once, in_python
from edbatch.kernels.backend import KernelCall
from edbatch.kernels.cpu import updates
from edbatch.kernels.cpu.backend import NumPyBackend
from edbatch.kernels.language.given import filled
from edbatch.training.rule import Rule, kernel_of

pytestmark = pytest.mark.cpu
WAYS = {"compiled": at_once, "in Python": in_python, "as it comes": nullcontext}


@pytest.mark.parametrize("way", WAYS)
def test_sums_of_squares(way):
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(n).astype(dtype) for n in (0, 1, 5, 1000) for dtype in ("float32", "float64")]
    want = [float((x.astype(np.float64) ** 2).sum()) for x in arrays]
    with WAYS[way]():
        found = NumPyBackend.squares(arrays)
        np.testing.assert_allclose(found(), want, rtol=1e-6)
        arrays[-1][:] = 2  # where they are, and not what was there
        assert found()[-1] == 4000


def test_sums_of_squares_in_pieces(monkeypatch):
    monkeypatch.setattr(updates, "MOST", 7)
    x = np.arange(30.0)
    with in_python():
        assert NumPyBackend.squares([x])() == [x @ x]


@pytest.mark.parametrize("way", WAYS)
def test_kernels_one_after_the_other(way):
    """The second reads what the first has left; one without rows is not called."""
    p, g = np.ones(4), np.full(4, 2.0)
    constants = np.array([1.0, 0.5])
    address = NumPyBackend.address
    calls = []
    for body in ("p = p - lr * (scale * g)", "p = p * scale + lr * g", "p = scale * lr * g - p"):
        kernel = kernel_of(Rule((), ("scale", "lr"), body), "float64", long=True)
        places = [(address(constants), 0, 0), (address(g), 32, 0), (address(p), 32, 0)]
        calls.append(KernelCall(kernel, 4, filled(kernel, [4], places)))
    with WAYS[way]():
        NumPyBackend.prepared(calls)([1, 1, 0])
    np.testing.assert_array_equal(p, np.zeros(4))  # 1 - 0.5 * 2, and then the gradient is cleared
    assert not g.any()
