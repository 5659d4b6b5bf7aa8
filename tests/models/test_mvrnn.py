"""MV-RNN against its equations in float64 NumPy, one node at a time."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.data.random_trees import random_trees
from edbatch.data.trees import read_trees
from edbatch.data.vocabulary import Vocabulary
from edbatch.models import MVRNN
from tests.models.equations import cross_entropy, every_way, forward, randomized, softmax

DIM = 4


def oracle(p, words, children):
    """Scores of every node."""
    nodes = []
    for word, below in zip(words, children, strict=True):
        if word is not None:
            nodes.append((p["vectors"][word], p["matrices"][word]))
        else:
            (a, A), (b, B) = (nodes[child] for child in below)
            vector = np.tanh(p["W"] @ np.concatenate([B @ a, A @ b]))
            nodes.append((vector, p["W_M"] @ np.concatenate([A, B])))
    return [p["W_out"] @ vector + p["b_out"] for vector, _ in nodes]


def check(trees, way):
    vocabulary = Vocabulary(word for tree in trees for word in tree.words if word is not None)
    model = eb.ParameterCollection(dtype="float64")
    made = MVRNN(model, len(vocabulary), 5, DIM)
    p = randomized(model)
    samples = [
        ([None if w is None else vocabulary[w] for w in tree.words], tree.children, tree.labels) for tree in trees
    ]
    got, report = forward(
        way, lambda: [made.probabilities(h) for words, below, _ in samples for h in made.hidden(words, below)]
    )
    scores = [oracle(p, words, below) for words, below, _ in samples]
    np.testing.assert_allclose(got, [softmax(row) for rows in scores for row in rows], rtol=1e-9)
    losses, _ = forward(way, lambda: [made.loss(*sample) for sample in samples])
    want = [sum(map(cross_entropy, rows, labels)) for rows, (_, _, labels) in zip(scores, samples, strict=True)]
    np.testing.assert_allclose(losses, want, rtol=1e-9)
    return report


@every_way
def test_made_up_trees(way):
    report = check([tree.binarized() for tree in random_trees(8, seed=5)], way)
    if way == "batched":
        assert report.batches == report.lower_bound


def test_real_trees(data_folder):
    check([tree.binarized() for tree in read_trees(data_folder / "sst" / "dev.txt")[:16]], "batched")


def test_words_begin_near_the_identity():
    model = eb.ParameterCollection()
    made = MVRNN(model, 3, 5, DIM)
    off = made.matrices.value() - np.eye(DIM)
    assert 0 < np.abs(off).max() <= 0.011
    with eb.Graph(), pytest.raises(eb.EdBatchError, match=r"cell MVRNN.leaf"):
        made.hidden([3], [()])
