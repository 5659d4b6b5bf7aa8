"""Cells that are called with arrays of expressions and of integers."""

import numpy as np
import pytest

import edbatch as eb
from tests.graph.array_uses import Model, assert_same


class Tagger:
    """Cells of expressions, of integers, of both, of what is drawn, and of several results."""

    def __init__(self, dtype="float64"):
        self.model = Model(dtype)

    @eb.cell
    def leaf(self, word: int):
        return eb.tanh(self.model.W @ eb.lookup(self.model.table, word))

    @eb.cell
    def compose(self, left, right, kind: int):
        gates = eb.sigmoid(self.model.W @ left + right)
        return gates, eb.pick(self.model.W, kind) * gates[0:8] + left

    @eb.cell
    def score(self, h, label: int, weight=1.0):
        return {"loss": eb.cross_entropy(h, label) * weight, "parts": (h[:4], [h[4:]])}

    def run(self, words, kinds, one, join):
        """A small tree over each word; with an array of words, or with one."""
        h = self.leaf(words)
        h, c = self.compose(h, one, kinds)
        h, c = self.compose(h * 0.5, c, kind=kinds)
        scored = self.score(eb.stop_gradient(h) + c, kinds, weight=0.3)
        return join([scored["loss"], self.score(h, 2)["loss"], scored["parts"][0], scored["parts"][1][0], c])


def of_tagger(tagger, words, kinds, policy, as_array, **options):
    with eb.options(**options), eb.Graph(policy, tagger.model.W.dtype) as graph:
        one = eb.lookup(tagger.model.table, 1)
        if as_array:
            parts = tagger.run(words, kinds, one, list)
        else:
            each = [tagger.run(int(w), int(k), one, list) for w, k in zip(words, kinds, strict=True)]
            parts = [list(column) for column in zip(*each, strict=True)]
        loss = eb.sum([eb.sum(part) if not part[0].shape else eb.sum(eb.sum(part)) for part in parts])
        values = [np.array(eb.forward(list(part))) for part in parts]
    loss.backward()
    return values, [one.gradient()], tagger.model.gradients(), graph.report()


@pytest.mark.parametrize(
    ("policy", "options"), [("sufficient", {}), ("none", {"cells": False}), ("agenda", {"recompute": True})]
)
def test_cells_of_arrays(policy, options):
    tagger = Tagger()
    words, kinds = np.array([3, 1, 3, 0, 7, 7, 3]), np.array([0, 5, 5, 2, 1, 0, 7])
    found = of_tagger(tagger, words, kinds, policy, as_array=True, **options)
    expected = of_tagger(tagger, words, kinds, policy, as_array=False, **options)
    assert_same(found, expected)
    assert found[3].nodes == expected[3].nodes


@pytest.mark.parametrize("n", [1, 1000])
def test_cells_of_short_and_long_arrays(n):
    tagger = Tagger("float32")
    rng = np.random.default_rng(n)
    words, kinds = rng.integers(0, 8, (2, n))
    found = of_tagger(tagger, words, kinds, "sufficient", as_array=True)
    assert_same(found, of_tagger(tagger, words, kinds, "sufficient", as_array=False), "float32")


@pytest.mark.parametrize("cells", [True, False])
def test_cells_of_no_entries(cells):
    tagger = Tagger()
    nothing = np.empty(0, np.int64)
    with eb.options(cells=cells), eb.Graph(dtype="float64") as graph:
        parts = tagger.run(nothing, nothing, eb.lookup(tagger.model.table, 1), list)
        assert [part.value().shape for part in parts] == [(0,), (0,), (0, 4), (0, 4), (0, 8)]
        assert graph.report().nodes == 1  # the single one


def test_integers_of_a_cell_that_count_from_the_end():
    model = Model()

    @eb.cell
    def both(i: int):
        return eb.pick(model.W, i) + eb.sum(eb.pick(model.b[:4], i))

    with eb.Graph(dtype="float64"):
        found = both(np.array([-1, 2, -4])).value()
    W, b = model.W.value(), model.b.value()
    np.testing.assert_allclose(found, [W[-1] + b[3], W[2] + b[2], W[-4] + b[0]], rtol=1e-15)


def test_what_cells_draw_is_another_mask_for_each_entry():
    @eb.cell
    def noisy(x):
        return eb.dropout(x, 0.5) + eb.dropout(x, 0.5) * 10

    with eb.Graph(seed=3) as graph:
        masks = noisy(eb.array([eb.ones(20)] * 4)).value()
        plain = eb.dropout(eb.array([eb.ones(20)] * 4), 0.5).value()
    with eb.Graph(seed=3):
        single = np.array(eb.forward([noisy(eb.ones(20)) for _ in range(4)]))
    np.testing.assert_array_equal(masks, single)
    assert len({row.tobytes() for row in plain}) == 4
    assert graph.next_draw > 0
