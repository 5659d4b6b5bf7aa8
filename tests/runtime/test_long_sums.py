"""Long sums are as exact as short ones, wherever their rows lie: values, and gradients that are sums of many."""

import numpy as np
import pytest

import edbatch as eb
from tests.arrays import on_host

pytestmark = pytest.mark.cpu  # GPUs add long lists up in a tree, in float32

N = 10_000
ROWS = (np.random.default_rng(0).random((N, 3)) + 0.5).astype(np.float32)
EXACT = ROWS.astype(np.float64)
ALLOWED = 3e-7  # rounding once or twice


WHERE = {
    "inputs": lambda x, at: x,
    "computed": lambda x, at: x * 1.0,
    "of several types": lambda x, at: (x * 1.0, 0.0 + x, x, eb.relu(x))[at % 4],
    "parts": lambda x, at: eb.concatenate([x, x])[3:],
}
LISTS = {"sum": lambda x: x.sum(0), "mean": lambda x: x.mean(0), "logsumexp": lambda x: np.log(np.exp(x).sum(0))}


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("name", LISTS)
def test_long_lists(name, where):
    with eb.Graph(policy="sufficient"):
        xs = [WHERE[where](eb.input(row), at) for at, row in enumerate(ROWS)]
        whole, short = getattr(eb, name)(xs), getattr(eb, name)(xs[:7])
        found = [on_host(x) for x in eb.forward([whole, short])]
    want = LISTS[name](EXACT), LISTS[name](EXACT[:7])
    np.testing.assert_allclose(found, want, rtol=ALLOWED)


def test_a_sum_does_not_depend_on_what_runs_with_it():
    def total(beside, policy):
        with eb.Graph(policy=policy):
            xs = [WHERE["of several types"](eb.input(row), at) for at, row in enumerate(ROWS[:500])]
            others = [eb.sum(xs[at : at + 3]) for at in range(beside)]
            return on_host(eb.forward([eb.sum(xs), *others])[0]).tobytes()

    assert len({total(beside, policy) for beside in (0, 5, 200) for policy in ("none", "sufficient", "depth")}) == 1


@pytest.mark.parametrize("axis", [0, 1, (0, 1)])
@pytest.mark.parametrize("name", ["sum", "mean", "std", "norm", "logsumexp"])
def test_long_axes(name, axis):
    reference = {
        "sum": np.sum, "mean": np.mean, "std": np.std,
        "norm": lambda x, axis: np.sqrt(np.sum(x * x, axis)),
        "logsumexp": lambda x, axis: np.log(np.sum(np.exp(x), axis)),
    }[name]  # fmt: skip
    with eb.Graph(policy="none"):
        x = eb.input(ROWS)
        found = [on_host(getattr(eb, name)(y, axis=axis).value()) for y in (x, x.T)]
    np.testing.assert_allclose(found[0], reference(EXACT, axis), rtol=ALLOWED)
    np.testing.assert_allclose(found[1], reference(EXACT.T, axis), rtol=ALLOWED)


@pytest.mark.parametrize("cells", [True, False])
def test_gradients_that_are_sums_of_many_rows(cells):
    """Of a bias, a row of a table, and a value that all read."""
    model = eb.ParameterCollection()
    bias = model.add_parameters(3, name="bias", init=1.0)
    table = model.add_lookup_parameters((2, 3), name="table", init=1.0)

    @eb.cell
    def step(x, shared, word: int):
        return eb.sum(x * (bias + shared + eb.lookup(table, word)))

    with eb.options(cells=cells), eb.Graph(policy="sufficient"):
        shared = eb.input(np.ones(3)) * 1.0
        loss = eb.sum([step(eb.input(row), shared, 1) for row in ROWS])
    loss.backward()
    for gradient in (bias.grad(), table.grad()[1], shared.gradient()):
        np.testing.assert_allclose(on_host(gradient), EXACT.sum(0), rtol=ALLOWED)
    np.testing.assert_allclose(on_host(loss.value()), 3 * EXACT.sum(), rtol=ALLOWED)
