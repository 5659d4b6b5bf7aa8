"""The networks that EdBatch is measured against compute what it computes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import edbatch as eb
from edbatch.data.random_trees import random_trees
from edbatch.data.trees import Tree
from edbatch.data.vocabulary import Vocabulary
from edbatch.models import TreeLSTM

torch = pytest.importorskip("torch", reason="the extra bench")


def samples(trees):
    from torch_peers import TreeSample

    words = Vocabulary(word for tree in trees for word in tree.words if word is not None)
    numbered = [
        TreeSample([None if w is None else words[w] for w in tree.words], tree.children, tree.labels) for tree in trees
    ]
    return numbered, len(words)


@st.composite
def any_trees(draw):
    """Trees of any form, single words among them."""
    trees = []
    for _ in range(draw(st.integers(1, 4))):
        tree = Tree([], [], [])
        roots = []
        for _ in range(draw(st.integers(1, 8))):
            tree._add(draw(st.integers(0, 4)), draw(st.sampled_from("abc")), ())
            roots.append(len(tree) - 1)
            while len(roots) > 1 and draw(st.booleans()):
                *roots, left, right = roots
                tree._add(draw(st.integers(0, 4)), None, (left, right))
                roots.append(len(tree) - 1)
        while len(roots) > 1:
            *roots, left, right = roots
            tree._add(0, None, (left, right))
            roots.append(len(tree) - 1)
        trees.append(tree)
    return trees


def assert_same(trees, dim):
    from torch_peers import ByLevel, PerSample

    numbered, words = samples(trees)
    model = eb.ParameterCollection(seed=0, dtype="float64")
    network = TreeLSTM(model, words, 5, dim)
    with eb.Graph(policy="sufficient", dtype="float64"):
        loss = eb.sum([network.loss(*sample) for sample in numbered])
    loss.backward()
    for kind in (PerSample, ByLevel):
        peer = kind(model)
        found = peer.loss([peer.prepare(sample) for sample in numbered])
        found.backward()
        assert found.item() == pytest.approx(float(loss.value()), rel=1e-12)
        for name, parameter in peer.named_parameters():
            gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            if gradient.is_sparse:
                gradient = gradient.to_dense()
            np.testing.assert_allclose(gradient.numpy(), model[name].grad(), rtol=1e-10, atol=1e-12, err_msg=name)


def test_loss_and_gradients_of_real_sized_trees_are_the_same():
    assert_same([tree.binarized() for tree in random_trees(20, seed=1)], dim=8)


@settings(max_examples=25)
@given(any_trees())
def test_loss_and_gradients_of_any_trees_are_the_same(trees):
    assert_same(trees, dim=3)


def test_updates_are_the_same():
    from torch_peers import ByLevel

    numbered, words = samples([tree.binarized() for tree in random_trees(20, seed=2)])
    model = eb.ParameterCollection(seed=0, dtype="float64")
    network = TreeLSTM(model, words, 5, 4)
    peer = ByLevel(model)
    trainer, optimizers = eb.Adam(model, lr=0.01, eps=1e-30), peer.optimizers(lr=0.01, eps=1e-30)
    for begin in (0, 10, 5):
        mini_batch = numbered[begin : begin + 10]
        with eb.Graph(policy="sufficient", dtype="float64"):
            loss = eb.sum([network.loss(*sample) for sample in mini_batch])
        loss.backward()
        trainer.update()
        for optimizer in optimizers:
            optimizer.zero_grad()
        peer.loss([peer.prepare(sample) for sample in mini_batch]).backward()
        for optimizer in optimizers:
            optimizer.step()
    for name, parameter in peer.named_parameters():
        np.testing.assert_allclose(parameter.detach().numpy(), model[name].value(), rtol=1e-8, atol=1e-10)
