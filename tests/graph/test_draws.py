"""Dropout draws other masks for every node of every graph, which follow from one seed alone."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph import draws


@pytest.fixture(autouse=True)
def seeded():
    before = draws.state()
    eb.seed(3)
    yield
    draws.restore(before)


def masks(rate=0.5, graphs=200, nodes=3, dim=8):
    """What is kept, 1 or 0: [graphs, nodes, dim]."""
    kept = []
    for _ in range(graphs):
        with eb.Graph(policy="depth"):
            x = eb.ones(dim)
            kept.append(eb.forward([eb.dropout(x, rate) for _ in range(nodes)]))
    return (np.array(kept) > 0).astype("float64")


def test_every_unit_is_kept_in_its_share_of_mini_batches():
    for rate in (0.1, 0.5, 0.8):
        kept = masks(rate)
        assert np.abs(kept.mean(0) - (1 - rate)).max() < 4.5 * np.sqrt(rate * (1 - rate) / len(kept))
        assert abs(kept.mean() - (1 - rate)) < 4.5 * np.sqrt(rate * (1 - rate) / kept.size)


def test_masks_of_neighbours_are_independent():
    kept = masks(graphs=400) - 0.5
    bound = 4.5 / 4  # of sums of products that are +-1/4, over their root
    for other in (np.roll(kept, 1, axis) for axis in range(3)):  # graphs, nodes, entries
        assert abs((kept * other).sum()) < bound * np.sqrt(kept.size)
    assert len({mask.tobytes() for mask in masks(graphs=100, nodes=10, dim=60).reshape(1000, 60)}) == 1000


def test_masks_follow_from_the_seed():
    first, other = masks(graphs=3), masks(graphs=3)
    eb.seed(3)
    np.testing.assert_array_equal(masks(graphs=3), first)
    assert (first != other).any()
    eb.seed(4)
    assert (masks(graphs=3) != first).any()
    values = []
    for _ in range(2):
        with eb.Graph(seed=7):
            values.append(eb.dropout(eb.ones(30), 0.5).value())
    np.testing.assert_array_equal(*values)


def test_graphs_that_draw_nothing_take_no_number():
    first = masks(graphs=2)
    eb.seed(3)
    a = masks(graphs=1)
    with eb.options(training=False), eb.Graph():
        eb.dropout(eb.ones(3), 0.5).value()
    with eb.Graph():
        eb.tanh(eb.ones(3)).value()
    with eb.Graph():
        apart(eb.ones(3)).value()
    np.testing.assert_array_equal(np.concatenate([a, masks(graphs=1)]), first)


@eb.cell
def apart(x):
    return x * 2


class Net:
    def __init__(self, model, dim=6):
        self.W = model.add_parameters((dim, dim), name="W")
        self.U = model.add_parameters((dim, dim), name="U")
        self.table = model.add_lookup_parameters((5, dim), name="table", init="glorot")

    @eb.cell
    def inner(self, x):
        return eb.dropout(eb.tanh(self.W @ x), 0.3)

    @eb.cell
    def step(self, h, word: int):
        """Masks of its own, of another cell, of a seed that it is given; one nobody reads; two that are alike."""
        x = eb.dropout(eb.lookup(self.table, word), 0.5)
        eb.dropout(h, 0.5)
        new = eb.tanh(self.U @ self.inner(h) + x)
        return new, eb.dropout(new, 0.2) + eb.dropout(new, 0.2) + eb.dropout(new, 0.4, seed=11)

    @eb.cell
    def read(self, scale=2.0):
        """No expression among its arguments."""
        return eb.dropout(self.W, 0.5) * scale


def run(policy="none", cells=False, split=True, recompute=False, device=None, training=True, compile="full"):
    """Values and gradients of two mini-batches."""
    eb.seed(5)
    net = Net(eb.ParameterCollection(seed=1, device=device))
    found = []
    switches = {"cells": cells, "split": split, "recompute": recompute, "training": training, "compile": compile}
    with eb.options(**switches):
        for _ in range(2):
            with eb.Graph(policy=policy):
                losses = [eb.sum(net.read())]
                for length in (4, 1, 3):
                    h = eb.input(np.linspace(-1, 1, 6))
                    for word in range(length):
                        h, out = net.step(h, word)
                        losses.append(eb.sum(eb.square(out)))
                    losses.append(eb.sum(eb.dropout(h, 0.5)))
                loss = eb.sum(losses)
                loss.backward()
                found += [loss.value(), *eb.forward(losses)]
    return [*found, net.W.grad(), net.U.grad(), net.table.grad()]


@pytest.mark.parametrize("policy", ["none", "depth", "agenda", "sufficient"])
@pytest.mark.parametrize("switches", [{}, {"split": False}, {"recompute": True}, {"compile": "plain"}], ids=str)
def test_neither_batching_nor_cells_change_masks(policy, switches):
    for got, want in zip(run(policy, True, **switches), run(), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-5)
    for got, want in zip(run(policy, False, **switches), run(), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-5)


@pytest.mark.cpu
def test_nor_do_devices(cuda):
    for got, want in zip(run("depth", True, device=cuda), run(), strict=True):
        np.testing.assert_allclose(np.asarray(cuda.backend.to_host(got)), want, rtol=2e-4, atol=2e-5)


def test_evaluation_drops_nothing():
    for got, want in zip(run("depth", True, training=False), run(training=False), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)
    x = np.arange(6.0)
    with eb.options(training=False), eb.Graph() as graph:
        y = eb.dropout(eb.input(x), 0.5)
    np.testing.assert_array_equal(y.value(), x)
    assert graph.report().nodes == 0


def test_a_run_that_goes_on_draws_what_it_would_have(tmp_path):
    model = eb.ParameterCollection(seed=0)
    W = model.add_parameters((6,), name="W", init=1.0)
    trainer = eb.SGD(model)

    def steps(n):
        for _ in range(n):
            with eb.Graph(policy="depth"):
                loss = eb.sum(eb.square(eb.dropout(W, 0.5) - 2))
            loss.backward()
            trainer.update()

    steps(3)
    model.save(tmp_path / "m.safetensors", trainer=trainer)
    steps(3)
    want = W.value()
    eb.seed(99)
    model.load(tmp_path / "m.safetensors")
    assert draws.state() == {"seed": 99, "graphs": 0}  # without its trainer it is a model, no run
    model.load(tmp_path / "m.safetensors", trainer=trainer)
    steps(3)
    np.testing.assert_array_equal(W.value(), want)


def test_options_of_a_graph_that_is_open_already():
    """It keeps what it was opened with, and a warning says so."""
    with eb.Graph() as graph:
        said = pytest.warns(
            eb.EdBatchWarning, match=r"options: training=False changed nothing .* around `eb.Graph\(\)`"
        )
        with said, eb.options(training=False, recompute=True):
            x = eb.dropout(eb.ones(1000), 0.5)
        assert x.value().std() > 0.5
        with eb.options(training=False):
            pass
        with eb.options(training=True):
            eb.dropout(x, 0.5)
        with eb.options(recompute=True):
            eb.sum(x).backward()
        with eb.options(training=False), eb.Graph():
            assert eb.dropout(eb.ones(10), 0.5).value().std() == 0
    assert graph.options.training
