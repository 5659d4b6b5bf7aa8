"""TreeLSTM against the equations of Tai et al. in float64 NumPy, one node at a time, under every policy."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.data.random_trees import random_trees
from edbatch.data.sample_files import sample_path
from edbatch.data.trees import Tree, read_trees
from edbatch.data.vocabulary import Vocabulary
from edbatch.models.tree_lstm import TreeLSTM
from edbatch.policy.heuristics import RULES

POLICIES = [None, *RULES]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def oracle(model, words, children, dim):
    """Probabilities at every node."""
    p = {parameter.name: parameter.value() for parameter in model}
    states, out = [], []
    for word, below in zip(words, children, strict=True):
        if word is not None:
            gates = p["W"] @ p["embed"][word] + p["b_leaf"]
            i, o, u = gates[:dim], gates[dim : 2 * dim], gates[2 * dim :]
            c = sigmoid(i) * np.tanh(u)
        else:
            (h1, c1), (h2, c2) = (states[child] for child in below)
            i, o, f1, f2, u = np.split(p["U"] @ np.concatenate([h1, h2]) + p["b"], 5)
            c = sigmoid(i) * np.tanh(u) + sigmoid(f1) * c1 + sigmoid(f2) * c2
        h = sigmoid(o) * np.tanh(c)
        states.append((h, c))
        scores = np.exp(p["W_out"] @ h + p["b_out"])
        out.append(scores / scores.sum())
    return np.array(out)


def check(trees, policy, dim=6, dtype="float64"):
    vocabulary = Vocabulary(word for tree in trees for word in tree.words if word is not None)
    model = eb.ParameterCollection(seed=1, dtype=dtype)
    lstm = TreeLSTM(model, words=len(vocabulary), labels=5, dim=dim)
    for parameter in model:  # biases too
        parameter.set_value(np.random.default_rng(len(parameter.name)).normal(0, 0.5, parameter.shape))
    samples = [([None if w is None else vocabulary[w] for w in tree.words], tree.children) for tree in trees]
    with eb.Graph(policy=policy, dtype=dtype) as graph:
        outs = [lstm.probabilities(h) for words, children in samples for h in lstm.hidden(words, children)]
        got = eb.forward(outs)
    want = np.concatenate([oracle(model, words, children, dim) for words, children in samples])
    np.testing.assert_allclose(got, want, **({"rtol": 1e-10} if dtype == "float64" else {"atol": 2e-6}))
    return graph.report()


@pytest.mark.parametrize("policy", POLICIES)
def test_random_trees(policy):
    report = check([tree.binarized() for tree in random_trees(20, seed=5)], policy)
    if policy in (None, "sufficient"):
        assert report.batches == report.lower_bound


def test_loss_is_the_sum_over_nodes():
    tree = random_trees(1, seed=2)[0].binarized()
    vocabulary = Vocabulary(word for word in tree.words if word is not None)
    lstm = TreeLSTM(eb.ParameterCollection(seed=1, dtype="float64"), words=len(vocabulary), labels=5, dim=4)
    words = [None if word is None else vocabulary[word] for word in tree.words]
    with eb.Graph(policy="sufficient", dtype="float64"):
        loss = lstm.loss(words, tree.children, tree.labels)
        probabilities = [lstm.probabilities(h) for h in lstm.hidden(words, tree.children)]
        loss, *probabilities = eb.forward([loss, *probabilities])
    want = -sum(np.log(p[label]) for p, label in zip(probabilities, tree.labels, strict=True))
    np.testing.assert_allclose(loss, want, rtol=1e-12)


def test_the_shipped_sample_in_float32():
    check([tree.binarized() for tree in read_trees(sample_path("trees.txt"))[:64]], None, dtype="float32")


@pytest.mark.parametrize("part", ["train", "dev"])
def test_real_trees(data_folder, part):
    trees = [tree.binarized() for tree in read_trees(data_folder / "sst" / f"{part}.txt")[:64]]
    report = check(trees, None)
    assert report.batches == report.lower_bound


def test_a_tree_of_depth_2000():
    words, children = [0], [()]
    for depth in range(2000):
        words += [depth % 7, None]
        children += [(), (len(words) - 3, len(words) - 2)]
    tree = Tree([0] * len(words), [None if w is None else f"w{w}" for w in words], children)
    report = check([tree], "sufficient", dim=3)
    assert report.batches == report.lower_bound
