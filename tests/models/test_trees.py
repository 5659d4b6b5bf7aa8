"""Tree networks against their equations in PyTorch."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.data.files import SAMPLES
from edbatch.data.trees import Tree, read_trees
from edbatch.data.vocabulary import Vocabulary
from edbatch.models import (
    MVRNN,
    RNTN,
    ChildSumTreeLSTM,
    TreeFC,
    TreeGRU,
    TreeLSTM,
    TreeLSTM2Type,
    TreeRNN,
)
from edbatch.models.tree_lstm_variants import node_types
from edbatch.policy.heuristics import RULES
from tests.models.against_torch import check, new_model

DIM = 3
TREES = [
    ([3, 7, None, 1, None], [(), (), (0, 1), (), (2, 3)], [0, 1, 2, 0, 1]),
    ([2, 5, 3, None, None], [(), (), (), (1, 2), (0, 3)], [1, 1, 2, 0, 2]),
    ([4], [()], [2]),
]
INPUTS = np.random.default_rng(0).normal(size=(6, 2))
BELOW = [(), (), (), (0, 1, 2), (1,), (3, 4)]  # children of any number


def tree_lstm(torch, p, word=None, below=(), kind=0):
    if word is not None:
        i, o, u = (p["W"] @ p["embed"][word] + p["b_leaf"]).chunk(3)
        c = torch.sigmoid(i) * torch.tanh(u)
    else:
        (h1, c1), (h2, c2) = below
        U, b = (p["U_second"], p["b_second"]) if kind else (p["U"], p["b"])
        i, o, f1, f2, u = (U @ torch.cat([h1, h2]) + b).chunk(5)
        c = torch.sigmoid(i) * torch.tanh(u) + torch.sigmoid(f1) * c1 + torch.sigmoid(f2) * c2
    return torch.sigmoid(o) * torch.tanh(c), c


def tree_rnn(torch, p, word=None, below=(), kind=0):
    if word is not None:
        return (p["embed"][word],)
    both = torch.cat([h for (h,) in below])
    inside = p["W"] @ both + p["b"]
    if "V" in p:
        V = p["V"].reshape(DIM, 2 * DIM, 2 * DIM)
        inside = inside + torch.stack([both @ V[k] @ both for k in range(DIM)])
    return (torch.tanh(inside),)


def mvrnn(torch, p, word=None, below=(), kind=0):
    if word is not None:
        return p["vectors"][word], p["matrices"][word]
    (a, A), (b, B) = below
    return torch.tanh(p["W"] @ torch.cat([B @ a, A @ b])), p["W_M"] @ torch.cat([A, B])


NETWORKS = {TreeLSTM: tree_lstm, TreeLSTM2Type: tree_lstm, TreeRNN: tree_rnn, RNTN: tree_rnn, MVRNN: mvrnn}


@pytest.mark.parametrize("kind", NETWORKS)
def test_networks_over_words(kind):
    model = new_model()
    network = kind(model, words=8, labels=3, dim=DIM, **({"seed": 10} if kind is TreeLSTM2Type else {}))
    types = [node_types(words, network.seed) if kind is TreeLSTM2Type else [0] * len(words) for words, _, _ in TREES]

    def build():
        hidden = [network.hidden(words, children) for words, children, _ in TREES]
        losses = [network.loss(*tree) for tree in TREES]
        return [*(f(h) for hs in hidden for h in hs for f in (network.scores, network.probabilities)), *losses]

    def wanted(torch, p):
        found, losses = [], []
        for (words, children, labels), kinds in zip(TREES, types, strict=True):
            nodes = []
            for word, below, of_node in zip(words, children, kinds, strict=True):
                nodes.append(NETWORKS[kind](torch, p, word, [nodes[child] for child in below], of_node))
            scores = [p["W_out"] @ node[0] + p["b_out"] for node in nodes]
            found += [one for of_node in scores for one in (of_node, torch.softmax(of_node, 0))]
            losses.append(torch.nn.functional.cross_entropy(torch.stack(scores), torch.tensor(labels), reduction="sum"))
        return [*found, *losses]

    report = check(model, build, wanted)
    assert report.batches < report.nodes / 2


def child_sum(torch, p, x, below):
    f, i, o, u = (p["t.W"] @ x + p["t.b"]).chunk(4)
    c = 0
    if below:
        i, o, u = (a + b for a, b in zip((i, o, u), (p["t.U"] @ sum(h for h, _ in below)).chunk(3), strict=True))
        c = sum(torch.sigmoid(f + p["t.U_f"] @ h) * c for h, c in below)
    c = torch.sigmoid(i) * torch.tanh(u) + c
    return torch.sigmoid(o) * torch.tanh(c), c


def test_any_number_of_children():
    model = new_model()
    layer = ChildSumTreeLSTM(model, input_dim=2, dim=DIM, name="t")

    def build():
        nodes = []
        for x, below in zip(INPUTS, BELOW, strict=True):
            nodes.append(layer.node(eb.input(x), [nodes[child] for child in below]))
        return [vector for node in nodes for vector in node]

    def wanted(torch, p):
        nodes = []
        for x, below in zip(torch.from_numpy(INPUTS), BELOW, strict=True):
            nodes.append(child_sum(torch, p, x, [nodes[child] for child in below]))
        return [vector for node in nodes for vector in node]

    check(model, build, wanted)


def test_tree_gru():
    model = new_model()
    layer = TreeGRU(model, input_dim=2, dim=DIM, name="t")

    def build():
        a, b, c, d = (layer.leaf(eb.input(x)) for x in INPUTS[:4])
        return [layer.compose(layer.compose(a, b), layer.compose(layer.compose(a, c), d))]

    def wanted(torch, p):
        def leaf(x):
            z, n = (p["t.W"] @ x + p["t.b_leaf"]).chunk(2)
            return torch.sigmoid(z) * torch.tanh(n)

        def compose(h1, h2):
            r1, r2, *m = (p["t.U"] @ torch.cat([h1, h2]) + p["t.b"]).chunk(5)
            reset = torch.cat([torch.sigmoid(r1) * h1, torch.sigmoid(r2) * h2])
            mixture = torch.softmax(torch.stack(m), 0)
            return (mixture * torch.stack([h1, h2, torch.tanh(p["t.U_n"] @ reset + p["t.b_n"])])).sum(0)

        a, b, c, d = map(leaf, torch.from_numpy(INPUTS[:4]))
        return [compose(compose(a, b), compose(compose(a, c), d))]

    check(model, build, wanted)


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

    report = check(model, build, wanted)
    assert report.batches == report.lower_bound


def probabilities(trees, policy, dtype="float64", dim=6):
    """At every node, by a TreeLSTM; and the report."""
    vocabulary = Vocabulary(word for tree in trees for word in tree.words if word is not None)
    lstm = TreeLSTM(eb.ParameterCollection(seed=1, dtype=dtype), words=len(vocabulary), labels=5, dim=dim)
    with eb.Graph(policy=policy, dtype=dtype) as graph:
        words = [[None if word is None else vocabulary[word] for word in tree.words] for tree in trees]
        hidden = [lstm.hidden(some, tree.children) for some, tree in zip(words, trees, strict=True)]
        values = eb.forward([lstm.probabilities(h) for hs in hidden for h in hs])
    return np.array(values), graph.report()


def test_policies_give_the_values_of_one_at_a_time():
    trees = [tree.binarized() for tree in read_trees(SAMPLES / "trees.txt")[:20]]
    alone, _ = probabilities(trees, "none")
    for policy in (None, *RULES):
        values, report = probabilities(trees, policy)
        np.testing.assert_allclose(values, alone, rtol=1e-10)
        if policy in (None, "sufficient", "critical-path"):
            assert report.batches == report.lower_bound
    np.testing.assert_allclose(probabilities(trees, None, "float32")[0], alone, atol=2e-6)


def test_a_tree_of_depth_2000():
    words, children = [0], [()]
    for depth in range(2000):
        words += [depth % 7, None]
        children += [(), (len(words) - 3, len(words) - 2)]
    tree = Tree([0] * len(words), [None if word is None else f"w{word}" for word in words], children)
    _, report = probabilities([tree], "sufficient", dim=3)
    assert report.batches == report.lower_bound


def test_words_of_an_mvrnn_begin_near_the_identity():
    made = MVRNN(eb.ParameterCollection(), 3, 5, DIM)
    assert 0 < np.abs(made.matrices.value() - np.eye(DIM)).max() <= 0.011
    with eb.Graph(), pytest.raises(eb.EdBatchError, match=r"cell MVRNN.leaf"):
        made.hidden([3], [()])
