"""The networks that EdBatch is measured against compute what it computes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import edbatch as eb
from edbatch.data.random_lattices import random_lattices
from edbatch.data.random_trees import random_trees
from edbatch.data.trees import Tree
from edbatch.data.vocabulary import Vocabulary
from edbatch.experiments.peers.tasks import TASKS
from edbatch.models import BiLSTMTagger, LatticeLSTM, TreeLSTM
from edbatch.models.workloads import WORKLOADS

torch = pytest.importorskip("torch", reason="the extra bench")


def tree_samples(trees):
    from edbatch.experiments.peers.samples import TreeSample

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


@st.composite
def any_sentences(draw):
    from edbatch.experiments.peers.samples import TaggedSample

    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    return [
        TaggedSample(*(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)) for _ in range(2))) for n in lengths
    ]


@st.composite
def any_lattices(draw):
    """Nodes without a character and nodes with two, words of any length, words twice."""
    from edbatch.experiments.peers.samples import LatticeSample

    found = []
    for _ in range(draw(st.integers(1, 4))):
        nodes = draw(st.integers(2, 7))
        arcs = [[]]
        for node in range(1, nodes):
            arc = st.tuples(st.integers(0, node - 1), st.integers(0, 2))
            usual = st.just([(node - 1, 1)])
            arcs.append(draw(st.one_of(usual, st.lists(arc, min_size=1, max_size=3))))
        found.append(LatticeSample(arcs, draw(st.lists(st.integers(0, 2), min_size=nodes, max_size=nodes))))
    return found


def kinds_of(workload):
    from edbatch.experiments.peers.table import PEERS

    per_sample, by_hand = PEERS[workload]
    return per_sample, *by_hand.values()


def in_some_order(rows):
    return rows[np.lexsort(rows.T.round(9))]


def assert_same(network_of, kinds, samples, loss_of=lambda network, sample: network.loss(*sample)):
    """Probabilities, losses and gradients of all parameters."""
    model = eb.ParameterCollection(seed=0, dtype="float64")
    network = network_of(model)
    random = np.random.default_rng(0)
    for parameter in model:  # biases too
        parameter.set_value(random.normal(scale=0.5, size=parameter.shape))
    with eb.Graph(policy="sufficient", dtype="float64"):
        loss = eb.sum([loss_of(network, sample) for sample in samples])
        probabilities = [network.probabilities(h) for sample in samples for h in network.hidden(*sample[:-1])]
    expected = in_some_order(np.array(eb.forward(probabilities)))
    loss.backward()
    for kind in kinds:
        peer = kind(model)
        batch = peer.batch([peer.prepare(sample) for sample in samples])
        np.testing.assert_allclose(in_some_order(peer.probabilities(batch).detach().numpy()), expected, rtol=1e-10)
        found = peer.loss(batch)
        found.backward()
        assert found.item() == pytest.approx(float(loss.value()), rel=1e-12)
        gradients = peer.gradients()
        assert gradients.keys() == {parameter.name.replace(".", "_") for parameter in model}
        for parameter in model:
            np.testing.assert_allclose(
                gradients[parameter.name.replace(".", "_")], parameter.grad(), rtol=1e-9, atol=1e-11,
                err_msg=f"{kind.__name__}: {parameter.name}",
            )  # fmt: skip


def assert_same_trees(trees, dim):
    from edbatch.experiments.peers.tree_networks import TreeLSTMByLevel, TreeLSTMPerSample

    numbered, words = tree_samples(trees)
    assert_same(lambda model: TreeLSTM(model, words, 5, dim), (TreeLSTMPerSample, TreeLSTMByLevel), numbered)


def test_real_sized_trees_are_the_same():
    assert_same_trees([tree.binarized() for tree in random_trees(20, seed=1)], dim=8)


@settings(max_examples=25)
@given(any_trees())
def test_any_trees_are_the_same(trees):
    assert_same_trees(trees, dim=3)


@pytest.mark.parametrize("workload", ["tree-gru", "mv-rnn", "tree-lstm-2type"])
@settings(max_examples=5)
@given(any_trees())
def test_any_trees_are_the_same_in_all_networks(workload, trees):
    numbered, words = tree_samples(trees)
    network = WORKLOADS[workload].network
    assert_same(lambda model: network(model, words, 5, 3), kinds_of(workload), numbered, TASKS[workload].loss)


@pytest.mark.parametrize("workload", ["tagger-characters", "lattice-gru", "encoder-decoder"])
def test_made_up_samples_are_the_same(workload):
    task = TASKS[workload](None, 9)
    assert_same(lambda model: task.network(model, 4), kinds_of(workload), task.samples, task.loss)


@settings(max_examples=15)
@given(any_sentences(), st.integers(1, 3))
def test_any_sentences_are_the_same(sentences, layers):
    from edbatch.experiments.peers.tagger import TaggerByPosition, TaggerPacked, TaggerPerSample

    assert_same(
        lambda model: BiLSTMTagger(model, 3, 3, 4, layers=layers),
        (TaggerPerSample, TaggerPacked, TaggerByPosition),
        sentences,
    )


def assert_same_lattices(lattices):
    from edbatch.experiments.peers.lattice import LatticeLSTMByPosition, LatticeLSTMPerSample

    assert_same(
        lambda model: LatticeLSTM(model, characters=100, words=400, tags=9, dim=4),
        (LatticeLSTMPerSample, LatticeLSTMByPosition),
        lattices,
    )


def test_real_sized_lattices_are_the_same():
    from edbatch.experiments.peers.samples import LatticeSample

    assert_same_lattices([LatticeSample(lattice.arcs, lattice.tags) for lattice in random_lattices(5, seed=1)])


@settings(max_examples=25)
@given(any_lattices())
def test_any_lattices_are_the_same(lattices):
    assert_same_lattices(lattices)


@pytest.mark.parametrize(
    ("trainer_of", "optimizers_of"),
    [
        (lambda model: eb.Adam(model, lr=0.01, eps=1e-30), lambda peer: peer.adam(lr=0.01, eps=1e-30)),
        (lambda model: eb.SGD(model, lr=0.01), lambda peer: peer.sgd(lr=0.01)),
    ],
    ids=["Adam", "SGD"],
)
def test_updates_are_the_same(trainer_of, optimizers_of):
    from edbatch.experiments.peers.peer import training_step
    from edbatch.experiments.peers.tree_networks import TreeLSTMByLevel

    numbered, words = tree_samples([tree.binarized() for tree in random_trees(20, seed=2)])
    model = eb.ParameterCollection(seed=0, dtype="float64")
    network = TreeLSTM(model, words, 5, 4)
    peer = TreeLSTMByLevel(model)
    trainer, step = trainer_of(model), training_step(peer, optimizers_of(peer))
    for begin in (0, 10, 5):
        mini_batch = numbered[begin : begin + 10]
        with eb.Graph(policy="sufficient", dtype="float64"):
            loss = eb.sum([network.loss(*sample) for sample in mini_batch])
        loss.backward()
        trainer.update()
        step(peer.batch([peer.prepare(sample) for sample in mini_batch]))
    for name, parameter in peer.named_parameters():
        np.testing.assert_allclose(parameter.detach().numpy(), model[name].value(), rtol=1e-8, atol=1e-10)
