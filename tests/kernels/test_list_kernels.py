"""Reductions of lists of rows against NumPy's in float64."""

import itertools

import numpy as np
import pytest

from edbatch.kernels.cpu.backend import NumPyBackend
from edbatch.kernels.list_kernels import REDUCTIONS
from tests.kernels.batches import reduced

ORACLE = {
    "sum_list": lambda x: x.sum(0),
    "mean_list": lambda x: x.mean(0),
    "maximum_list": lambda x: x.max(0),
    "minimum_list": lambda x: x.min(0),
    "logsumexp_list": lambda x: np.logaddexp.reduce(x, axis=0),
}
LENGTHS = (1, 2, 3, 130, 1000)


def test_each_has_an_oracle():
    assert ORACLE.keys() == REDUCTIONS.keys()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("width", [1, 3, 300])
@pytest.mark.parametrize("op", REDUCTIONS)
def test_of_any_length_and_width(op, width, dtype):
    rows = (np.random.default_rng(width).normal(size=(sum(LENGTHS), width)) * 9).astype(dtype)
    offsets = np.append(0, np.cumsum(LENGTHS)).astype(np.int32)
    out = reduced(NumPyBackend(), op, rows, offsets)
    want = [ORACLE[op](rows[a:b].astype(np.float64)) for a, b in itertools.pairwise(offsets)]
    # A sum of numbers of both signs is exact to a unit of their sizes.
    tolerance = {"rtol": 1e-6, "atol": 3e-5} if dtype == "float32" else {"rtol": 1e-14, "atol": 3e-13}
    np.testing.assert_allclose(out, want, **tolerance)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", REDUCTIONS)
def test_infinities_and_nan(op, dtype):
    inf, nan = np.inf, np.nan
    lists = [[inf], [-inf], [nan], [-inf, -inf], [inf, 1], [1, -inf], [inf, inf], [nan, inf], [-inf, nan, 3]]
    lists += [[inf, -inf], [1e4, 1e4], [-1e4, -1e4 + 1]]
    offsets = np.append(0, np.cumsum([len(one) for one in lists])).astype(np.int32)
    rows = np.concatenate(lists).astype(dtype)[:, None]
    out = reduced(NumPyBackend(), op, rows, offsets)[:, 0]
    with np.errstate(invalid="ignore"):
        want = [ORACLE[op](np.array(one)) for one in lists]
    np.testing.assert_allclose(out, want, rtol=1e-6)
