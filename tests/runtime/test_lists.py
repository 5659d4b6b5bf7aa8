"""Reductions of lists, there and back, against PyTorch in float64; in compiled loops, whatever is in the lists."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.devices import device

torch = pytest.importorskip("torch")

DIM = 5
REDUCTIONS = {
    "sum": (eb.sum, lambda x: x.sum(0)),
    "mean": (eb.mean, lambda x: x.mean(0)),
    "max": (eb.max, lambda x: x.amax(0)),
    "min": (eb.min, lambda x: x.amin(0)),
    "logsumexp": (eb.logsumexp, lambda x: x.logsumexp(0)),
}
# Of the first rows, by number: one row alone, all, some twice, far more than all.
LISTS = [[0], [2], [1, 3], [4, 4], [0, 1, 2, 3, 4, 5], [5, 0, 5, 1, 5], [*range(6)] * 167]


def rows_of(dtype):
    """Six rows, some of whose entries are equal, or infinite."""
    rows = np.random.default_rng(3).normal(size=(6, DIM)).astype(dtype)
    rows[1, 0] = rows[3, 0] = rows[5, 0]
    rows[5, 1] = rows[3, 2] = -np.inf
    return rows


def step(where, reduce, rows, policy):
    """Values and gradients; rows of several types and widths of rows, gradients into some of the reductions only."""
    with where, eb.Graph(policy=policy, dtype=str(rows.dtype)):
        xs = [eb.input(row) for row in rows]
        wide = eb.input(np.stack([rows[0], rows[1]]))
        seen = [wide[0], wide[1], eb.neg(eb.neg(xs[2])), eb.stop_gradient(xs[3]), xs[4], eb.neg(eb.neg(xs[5]))]
        ys = [reduce([seen[i] for i in some]) for some in LISTS]
        flowing = [y for at, y in enumerate(ys) if at % 3 != 1]
        again = reduce([*ys, eb.concatenate([xs[4][:2], xs[5][2:]])])
        loss = eb.sum([*(eb.sum(eb.sigmoid(y) * (at + 1)) for at, y in enumerate(flowing)), eb.sum(eb.tanh(again))])
        loss.backward()
        return [loss.value(), *(y.value() for y in ys), again.value(), wide.gradient(), *(x.gradient() for x in xs)]


def want(reduce, rows):
    """The same by PyTorch; gradients of rows that are only read in `wide` are 0."""
    xs = [torch.tensor(row, dtype=torch.float64, requires_grad=True) for row in rows]
    wide = torch.tensor(np.stack([rows[0], rows[1]]), dtype=torch.float64, requires_grad=True)
    seen = [wide[0], wide[1], xs[2], xs[3].detach(), xs[4], xs[5]]
    ys = [reduce(torch.stack([seen[i] for i in some])) for some in LISTS]
    again = reduce(torch.stack([*ys, torch.cat([xs[4][:2], xs[5][2:]])]))
    flowing = [y for at, y in enumerate(ys) if at % 3 != 1]
    loss = sum((torch.sigmoid(y) * (at + 1)).sum() for at, y in enumerate(flowing)) + torch.tanh(again).sum()
    loss.backward()
    gradients = [np.zeros(DIM) if x.grad is None else x.grad.numpy() for x in xs]
    return [loss.detach(), *(y.detach() for y in ys), again.detach(), wide.grad, *gradients]


def check(where, name, dtype, policy):
    ours, theirs = REDUCTIONS[name]
    rows = rows_of(dtype)
    tolerance = {"rtol": 3e-5, "atol": 3e-5} if dtype == "float32" else {"rtol": 1e-11, "atol": 1e-12}
    for got, exact in zip(step(where, ours, rows, policy), want(theirs, rows), strict=True):
        np.testing.assert_allclose(got, np.asarray(exact), **tolerance)


@pytest.mark.cpu
@pytest.mark.parametrize("policy", ["sufficient", "depth", "none"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_values_and_gradients_without_python(name, dtype, policy):
    check(device("cpu"), name, dtype, policy)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_an_emulated_gpu_gives_the_same(cuda, name, dtype):
    check(cuda, name, dtype, "sufficient")


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("place", ["cpu", "cuda"])
def test_rows_whose_entries_are_not_side_by_side(cuda, place, name):
    """Columns of a matrix."""
    ours, theirs = REDUCTIONS[name]
    rows = np.random.default_rng(0).normal(size=(4, 4))
    with device(place), eb.Graph(policy="sufficient", dtype="float64"):
        x = eb.input(rows)
        xs = [eb.transpose(x)[i] for i in range(4)]
        ys = [ours([xs[0], xs[2], xs[0]]), ours(xs), ours([*xs, eb.tanh(xs[1])]), ours([xs[3]])]
        loss = eb.sum([eb.sum(y * y) for y in ys[:3]])
        loss.backward()
        found = [loss.value(), ys[3].value(), x.gradient()]
    x = torch.tensor(rows, requires_grad=True)
    xs = list(x.T)
    ys = [[xs[0], xs[2], xs[0]], xs, [*xs, torch.tanh(xs[1])]]
    loss = sum((theirs(torch.stack(y)) ** 2).sum() for y in ys)
    loss.backward()
    for got, exact in zip(found, [loss.detach(), rows[:, 3], x.grad], strict=True):
        np.testing.assert_allclose(got, exact, rtol=1e-12)


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
