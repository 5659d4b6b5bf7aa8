"""The small things that are timed compute what they should."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.experiments.mini_batches import MiniBatches
from scripts.bench.host import HIDDEN, Model, figures
from scripts.bench.mini_batches import samples


@pytest.fixture(autouse=True)
def made_up_data(monkeypatch):
    monkeypatch.delenv("EDBATCH_DATA", raising=False)


def test_ten_ops_and_a_cell():
    model = Model()
    W, b = model.W.value(), model.b.value()
    with eb.Graph() as graph:
        h = model.ten_ops(eb.input(model.x))
        called = model.cell(eb.input(model.x))
    want = model.x
    for _ in range(5):
        want = np.tanh(W @ want)
    np.testing.assert_allclose(h.value(), want, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(called.value(), np.tanh(W @ model.x + b), rtol=1e-4, atol=1e-6)
    assert graph.report().nodes == 11
    assert h.shape == (HIDDEN,)


def test_a_step_changes_the_parameters_and_a_backward_run_alone_does_not():
    model = Model()
    before = model.W.value()
    assert model.backward_after_reads() > 0
    np.testing.assert_array_equal(model.W.value(), before)
    model.small_step()
    assert (model.W.value() != before).any()


def test_everything_is_timed():
    found = figures(MiniBatches("tree-lstm", samples("tree-lstm", 3), 4, 1))
    assert len(found) == 7
    assert all(value > 0 for value in found.values())
