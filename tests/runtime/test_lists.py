"""Reductions of lists of infinities and NaN: values are NumPy's, and what flows to them."""

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


@pytest.mark.parametrize("reduce", ORACLE, ids=lambda reduce: reduce.__name__)
def test_infinities_and_nan(place, reduce):
    inf, nan = np.inf, np.nan
    lists = [[inf], [-inf], [nan], [-inf, -inf], [inf, 1], [1, -inf], [inf, inf], [nan, inf], [-inf, nan, 3]]
    lists += [[inf, -inf], [1e4, 1e4], [-1e4, -1e4 + 1]]
    offsets = np.append(0, np.cumsum([len(one) for one in lists])).astype(np.int32)
    rows = np.concatenate(lists).astype(np.float32)[:, None]
    out = reduced(place, reduce, rows, offsets)[:, 0]
    with np.errstate(invalid="ignore"):
        want = [ORACLE[reduce](np.array(one)) for one in lists]
    np.testing.assert_allclose(out, want, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nothing_flows_to_a_list_of_negative_infinities(dtype):
    with eb.Graph(dtype=dtype):
        x = eb.input(np.array([-np.inf, 1]))
        y = eb.logsumexp([x, x, x - 1])
        eb.sum(eb.sigmoid(y)).backward()
    assert y.value()[0] == -np.inf
    assert x.gradient()[0] == 0
    assert x.gradient()[1] > 0


def test_nan_in_what_flows_to_lists_is_found():
    """An infinite gradient times a share of 0."""
    with eb.Graph(policy="sufficient", check_nan=True), np.errstate(all="ignore"):
        x = eb.input(np.array([1.0, 2.0]))
        loss = eb.sum(eb.logsumexp([x, x + 1e6]) * np.inf)
        loss.backward()
        with pytest.raises(eb.EdBatchError, match=r"NaN in the gradient of logsumexp_list"):
            x.gradient()


@pytest.mark.parametrize("how", ["rows", "columns"])
def test_nan_in_attention_is_found_where_it_comes_from(how):
    with eb.Graph(policy="sufficient", check_nan=True), np.errstate(all="ignore"):
        x = eb.input(np.eye(3))
        rows = [x[at] if how == "rows" else x.T[at] for at in range(3)]
        eb.sum(eb.attention(rows[0], rows, rows) * np.inf).backward()
        with pytest.raises(eb.EdBatchError, match="NaN in the gradient of attention"):
            x.gradient()
    with eb.Graph(policy="sufficient", check_nan=True):
        x = eb.input([np.inf, 1.0])
        with pytest.raises(eb.EdBatchError, match="NaN in a result of attention"):
            eb.attention(x, [x, x], [x, x]).value()
