"""The way back through a plan as a plan: additions to operands of every kind."""

import numpy as np
import pytest
from hypothesis import strategies as st

import edbatch as eb
from edbatch.devices import device
from edbatch.memory.plan import format

DIM = 3


@pytest.fixture(params=["cpu", "cuda"])
def where(request, cuda):
    return device(request.param)


def inputs(n):
    return [eb.input(np.cos(np.arange(DIM) + at)) for at in range(n)]


def weights(n):
    return [np.sin(np.arange(DIM) + 2 * at) for at in range(n)]


def values(n):
    return np.array([np.cos(np.arange(DIM) + at) for at in range(n)])


def weighted(xs):
    return eb.sum([eb.sum(x * eb.input(w)) for x, w in zip(xs, weights(len(xs)), strict=True)])


def check(xs, want):
    for x, gradient in zip(xs, want, strict=True):
        np.testing.assert_allclose(x.gradient(), gradient, rtol=1e-5, atol=1e-6)


def test_rows_that_a_batch_reads_several_times(where):
    """A gather with duplicates: each gets the sum; on a GPU the duplicates are given as groups."""
    at = [4, 0, 4, 1, 3, 4, 0, 2]
    with where, eb.Graph(policy="sufficient"):
        xs = inputs(5)
        hs = [eb.tanh(x) for x in xs]
        weighted([eb.square(hs[i]) for i in at]).backward()
    h = np.tanh(values(5))
    want = np.zeros((5, DIM))
    for i, w in zip(at, weights(8), strict=True):
        want[i] += 2 * h[i] * w
    check(hs, want)
    check(xs, want * (1 - h**2))


def test_a_list_with_one_node_several_times(where):
    """Also in several lists; the rows of sums are repeated for their members."""
    lists = [[2, 2, 0], [1], [0, 2, 2, 2], [3, 3]]
    with where, eb.Graph(policy="sufficient"):
        xs = inputs(4)
        hs = [eb.tanh(x) for x in xs]
        sums = [eb.sum([hs[i] for i in some]) for some in lists]
        weighted([eb.square(x) for x in sums]).backward()
    h = np.tanh(values(4))
    slopes = [2 * h[some].sum(axis=0) * w for some, w in zip(lists, weights(4), strict=True)]
    check(sums, slopes)
    want = np.zeros((4, DIM))
    for some, slope in zip(lists, slopes, strict=True):
        for i in some:
            want[i] += slope
    check(hs, want)


def some(xs):
    """Half of them, at no constant distance."""
    return [x for at, x in enumerate(xs) if at % 5 in (1, 2)]


@pytest.mark.parametrize("read", ["slice", "shared", "strided", "gather", "gather_many"])
def test_some_nodes_of_a_batch(where, read):
    """Gradients flow into a part of a batch only: its operands are restricted to that part."""
    n = 10
    with where, eb.Graph(policy="sufficient") as graph:
        hs = [eb.tanh(x) for x in inputs(2 * n)]
        eb.forward(hs)  # now their rows are in this order
        others = [eb.square(x) for x in inputs(n)]
        both = [eb.concatenate([x, x])[:DIM] for x in others]
        at = {"slice": range(n), "shared": [3] * n, "strided": range(0, 2 * n, 2)}.get(
            read, [7 * i % n for i in range(n)]
        )
        operands = [hs[i] for i in at]
        if read == "gather_many":
            operands = [both[i] if i % 3 else hs[at[i]] for i in range(n)]
        products = [a * b for a, b in zip(operands, others, strict=True)]
        eb.forward(products)  # before something has them in another order
        assert getattr(format, read.upper()) in graph._evaluation.plan.tables.operands["access"]
        weighted(some(products)).backward()
    want_hs, want_others = np.zeros((2 * n, DIM)), np.zeros((n, DIM))
    x, y = np.tanh(values(2 * n)), values(n) ** 2
    for i, w in zip(some(range(n)), weights(4), strict=True):
        if read == "gather_many" and i % 3:
            want_others[i] += 2 * w * y[i]
        else:
            want_hs[at[i]] += w * y[i]
            want_others[i] += w * x[at[i]]
    check(hs, want_hs)
    check(others, want_others)


def test_some_lists_of_a_batch(where):
    members = [[0, 1], [2, 2, 0], [3], [1, 3, 1], [2, 0]]
    with where, eb.Graph(policy="sufficient"):
        hs = [eb.tanh(x) for x in inputs(4)]
        sums = [eb.sum([hs[i] for i in of]) for of in members]
        weighted(some([eb.square(x) for x in sums])).backward()
    want = np.zeros((4, DIM))
    h = np.tanh(values(4))
    for of, w in zip(some(members), weights(2), strict=True):
        for i in of:
            want[i] += 2 * w * h[of].sum(axis=0)
    check(hs, want)


lists = st.lists(st.lists(st.integers(0, 10**6), min_size=1, max_size=4), min_size=1, max_size=8)
