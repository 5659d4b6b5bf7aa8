"""What workloads put around layers: words below them and a softmax above, and what programs say of their steps."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.models.workloads import WORKLOADS
from tests.models.against_torch import randomized

DIM = 6


def softmax(x):
    return np.exp(x) / np.exp(x).sum()


def made(name, n=5, seed=2):
    """A network in float64 with its samples, their labels, and its parameters by name."""
    workload = WORKLOADS[name]
    samples, sizes, labels = workload.number(workload.generate(n, seed))
    model = eb.ParameterCollection(seed=3, dtype="float64")
    network = workload.network(model, *sizes, DIM)
    return network, samples, labels, randomized(model)


def outputs(name, network, samples):
    """Per sample the probabilities at its places."""
    with eb.Graph(dtype="float64"):
        found = WORKLOADS[name].outputs(network, samples)
        values = iter(eb.forward([p for of_sample in found for p in of_sample]))
    return [[next(values) for _ in of_sample] for of_sample in found]


def tree_gru(network, words, children):
    hs = []
    for word, below in zip(words, children, strict=True):
        leaf = word is not None
        hs.append(network.layer.leaf(network.embed[word]) if leaf else network.layer.compose(*(hs[at] for at in below)))
    return hs


def child_sum(network, words, children):
    states = []
    for word, below in zip(words, children, strict=True):
        x = eb.zeros(DIM) if word is None else network.embed[word]
        states.append(network.layer.node(x, [states[child] for child in below]))
    return [h for h, _ in states]


def tree_fc(network, words):
    return [network.layer.root([network.embed[word] for word in words])]


LAYERS = {"tree-gru": tree_gru, "child-sum": child_sum, "tree-fc": tree_fc}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_over_words(name):
    network, samples, _, p = made(name)
    for sample, found in zip(samples, outputs(name, network, samples), strict=True):
        with eb.Graph(dtype="float64", policy="none"):
            hidden = eb.forward(LAYERS[name](network, *sample))
        np.testing.assert_allclose(found, [softmax(p["W_out"] @ h + p["b_out"]) for h in hidden], rtol=1e-9)


def test_experts():
    network, samples, _, p = made("mixture-of-experts")
    for (x,), (found,) in zip(samples, outputs("mixture-of-experts", network, samples), strict=True):
        gate = p["W_gate"] @ x
        expert = network.layer.experts[gate.argmax()]
        h = softmax(gate).max() * np.tanh(p[expert.W.name] @ x + p[expert.b.name])
        np.testing.assert_allclose(found, softmax(p["W_out"] @ h + p["b_out"]), rtol=1e-9)


def test_trees_are_said_node_by_node():
    """The probabilities of what the nodes are make up the loss of the generator."""
    network, samples, labels, _ = made("td-tree-lstm")

    def nodes(tree):
        return [len(labels) - 1, *nodes(tree[0]), *nodes(tree[1])] if isinstance(tree, tuple) else [tree]

    for (tree, topic), found in zip(samples, outputs("td-tree-lstm", network, samples), strict=True):
        said = [p[node] for p, node in zip(found, nodes(tree), strict=True)]
        with eb.Graph(dtype="float64"):
            loss = network.loss(tree, topic).value()
        assert -np.log(said).sum() == pytest.approx(loss, rel=1e-9)


def test_a_parser_makes_the_transitions_that_it_says_are_best():
    network, samples, labels, _ = made("parser")
    parsed = eb.run([network.parse(*sample) for sample in samples], dtype="float64")
    for (words,), found, (heads, relations) in zip(samples, outputs("parser", network, samples), parsed, strict=True):
        assert len(found) == 2 * len(words)  # each is shifted, and taken away
        configuration, given = eb.models.parser.Configuration(len(words)), {}
        for p in found:
            allowed = configuration.allowed()
            action = max((k for k, known in enumerate(network.known) if known.move in allowed), key=lambda k: p[k])
            move, relation = network.known[action]
            assert labels[action].startswith(move.name.lower())
            if relation >= 0:
                given[configuration.stack[-1]] = relation
            configuration.apply(move)
        assert configuration.heads == heads
        assert [given[word] for word in range(1, len(words) + 1)] == relations


def test_questions_have_the_answers_of_clevr():
    network, samples, labels, _ = made("module-network")
    assert len(labels) == 28
    with eb.Graph(dtype="float64"):
        (steps, picture), (expected,) = samples[0], outputs("module-network", network, samples)[0]
        h = super(type(network), network).hidden(steps, eb.input(picture))
        np.testing.assert_allclose(network.probabilities(h).value(), expected, rtol=1e-9)
