"""Reductions of lists of any length and width, of infinities and NaN, against NumPy's in float64."""

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
LENGTHS = (1, 2, 3, 130, 1000)


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
@pytest.mark.parametrize("width", [1, 3, 300])
@pytest.mark.parametrize("reduce", ORACLE, ids=lambda reduce: reduce.__name__)
def test_of_any_length_and_width(place, reduce, width, dtype):
    rows = (np.random.default_rng(width).normal(size=(sum(LENGTHS), width)) * 9).astype(dtype)
    offsets = np.append(0, np.cumsum(LENGTHS)).astype(np.int32)
    out = reduced(place, reduce, rows, offsets)
    want = [ORACLE[reduce](rows[a:b].astype(np.float64)) for a, b in itertools.pairwise(offsets)]
    # A sum of numbers of both signs is exact to a unit of their sizes; GPUs add up 64 one by one before that.
    rtol, atol = (1e-6, 3e-5) if dtype == "float32" else (1e-14, 3e-13)
    np.testing.assert_allclose(out, want, rtol=rtol, atol=atol if place.kind == "cpu" else 8 * atol)


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
