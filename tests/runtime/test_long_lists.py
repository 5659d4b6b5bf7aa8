"""Reductions of lists of infinities and NaN, against NumPy's in float64."""

import itertools

import numpy as np
import pytest

import edbatch as eb

ORACLE = {
    eb.sum: lambda x: x.sum(0),
    eb.mean: lambda x: x.mean(0),
    eb.max: lambda x: x.max(0),
    eb.min: lambda x: x.min(0),
    eb.logsumexp: lambda x: np.logaddexp.reduce(x, axis=0),
}


@pytest.fixture(params=["cpu", "cuda"])
def place(request, cuda):
    """Both devices."""
    return eb.device(request.param)


def reduced(place, reduce, rows, offsets):
    """Reductions of rows, from each offset to the next."""
    with place, eb.Graph(policy="sufficient", dtype=rows.dtype.name):
        xs = [eb.input(row) for row in rows]
        return np.array(eb.forward([reduce(xs[a:b]) for a, b in itertools.pairwise(offsets)]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("reduce", ORACLE, ids=lambda reduce: reduce.__name__)
def test_infinities_and_nan(place, reduce, dtype):
    inf, nan = np.inf, np.nan
    lists = [[inf], [-inf], [nan], [-inf, -inf], [inf, 1], [1, -inf], [inf, inf], [nan, inf], [-inf, nan, 3]]
    lists += [[inf, -inf], [1e4, 1e4], [-1e4, -1e4 + 1]]
    offsets = np.append(0, np.cumsum([len(one) for one in lists])).astype(np.int32)
    rows = np.concatenate(lists).astype(dtype)[:, None]
    out = reduced(place, reduce, rows, offsets)[:, 0]
    with np.errstate(invalid="ignore"):
        want = [ORACLE[reduce](np.array(one)) for one in lists]
    np.testing.assert_allclose(out, want, rtol=1e-6)
