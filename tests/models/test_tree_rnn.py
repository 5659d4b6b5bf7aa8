"""TreeRNN, RNTN and Tree-FC against their equations in PyTorch."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.models import RNTN, TreeFC, TreeRNN
from tests.models.against_torch import check, check_policies, check_training, new_model

TREES = [
    ([3, 7, None, 1, None], [(), (), (0, 1), (), (2, 3)], [0, 1, 2, 0, 1]),
    ([2, 5, 3, None, None], [(), (), (), (1, 2), (0, 3)], [1, 1, 2, 0, 2]),
    ([4], [()], [2]),
]
DIM = 3


@pytest.mark.parametrize("kind", [TreeRNN, RNTN])
def test_values_and_gradients(kind):
    model = new_model()
    network = kind(model, words=8, labels=3, dim=DIM)

    def build():
        return [network.scores(h) for words, children, _ in TREES for h in network.hidden(words, children)]

    def wanted(torch, p):
        found = []
        for words, children, _ in TREES:
            nodes = []
            for word, below in zip(words, children, strict=True):
                if word is not None:
                    nodes.append(p["embed"][word])
                    continue
                both = torch.cat([nodes[child] for child in below])
                inside = p["W"] @ both + p["b"]
                if kind is RNTN:
                    V = p["V"].reshape(DIM, 2 * DIM, 2 * DIM)
                    inside = inside + torch.stack([both @ V[k] @ both for k in range(DIM)])
                nodes.append(torch.tanh(inside))
            found += [p["W_out"] @ h + p["b_out"] for h in nodes]
        return found

    report = check(model, build, wanted)
    assert report.batches < report.nodes / 2
    check_policies(build)


@pytest.mark.parametrize("kind", [TreeRNN, RNTN])
def test_training(kind):
    model = new_model()
    network = kind(model, words=8, labels=3, dim=8)
    check_training(model, lambda: eb.sum([network.loss(*tree) for tree in TREES]))


def test_full_trees():
    model = new_model()
    tree = TreeFC(model, input_dim=2, dim=DIM, name="fc")
    inputs = np.random.default_rng(0).normal(size=(2, 8, 2))

    def build():
        return [tree.root([eb.input(x) for x in xs]) for xs in inputs]

    def wanted(torch, p):
        level = torch.from_numpy(inputs) @ p["fc.W_leaf"].T
        while level.shape[1] > 1:
            level = torch.relu(level.reshape(len(level), -1, 2 * DIM) @ p["fc.W"].T + p["fc.b"])
        return list(level[:, 0])

    check(model, build, wanted)
    check_policies(build)
    check_training(model, lambda: eb.sum([eb.sum((h - 1) * (h - 1)) for h in build()]))


def test_256_leaves_are_9_levels():
    tree = TreeFC(eb.ParameterCollection(seed=0), input_dim=2, dim=DIM)
    with eb.Graph(policy="sufficient") as graph:
        eb.forward([tree.root([eb.input([1.0, at]) for at in range(256)]) for _ in range(3)])
    report = graph.report()
    assert report.batches == report.lower_bound <= 10
    for n in (0, 3, 6):
        with eb.Graph(), pytest.raises(eb.EdBatchError, match=f"expected 1, 2, 4, 8, ... inputs, got {n}"):
            tree.root([eb.zeros(2)] * n)
