"""Gradients of every cell of the models against finite differences, and of LSTM, GRU and TreeLSTM against PyTorch."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.models import (
    GRU,
    LSTM,
    Bidirectional,
    ChildSumTreeLSTM,
    CoupledLSTM,
    PeepholeLSTM,
    SimpleRNN,
    Stacked,
    TreeGRU,
    TreeLSTM,
)
from tests.gradients import compare, numeric_gradients

IN, DIM = 3, 4
OPTIONS = [{}, {"recompute": True}, {"cells": False}]
TREES = [([3, 1, None, 0, None], [(), (), (0, 1), (), (2, 3)]), ([2, 2, None], [(), (), (0, 1)]), ([1], [()])]


def randomized(model):
    random = np.random.default_rng(5)
    for parameter in model:
        parameter.set_value(random.uniform(-0.7, 0.7, parameter.shape))


def weighted(xs):
    """A loss that no two entries enter alike."""
    return eb.sum([eb.sum(x * eb.input(np.cos(np.arange(x.shape[0]) + at))) for at, x in enumerate(xs)])


def check(model, build, policy="sufficient"):
    def loss():
        with eb.Graph(policy=policy, dtype="float64"):
            return build()

    wants = numeric_gradients(model, lambda: loss().value())
    for options in OPTIONS:
        model.zero_grad()
        with eb.options(**options):
            loss().backward()
        compare(model, wants)


@pytest.mark.parametrize("kind", [LSTM, CoupledLSTM, PeepholeLSTM, GRU, SimpleRNN])
def test_recurrent_layers(kind):
    model = eb.ParameterCollection(dtype="float64")
    stacked = Stacked([kind(model, IN, DIM, name="first"), kind(model, DIM, DIM, name="second")])
    layers = Bidirectional(stacked, kind(model, IN, 2, name="other way"))
    randomized(model)
    random = np.random.default_rng(1)
    samples = [random.standard_normal((length, IN)) for length in (3, 1, 2)]
    check(model, lambda: weighted([h for xs in samples for h in layers.transduce(list(map(eb.input, xs)))]))


def test_tree_lstm():
    model = eb.ParameterCollection(dtype="float64")
    lstm = TreeLSTM(model, words=4, labels=3, dim=DIM)
    randomized(model)

    def build():
        hidden = [h for words, children in TREES for h in lstm.hidden(words, children)]
        losses = [eb.cross_entropy(lstm.scores(h), at % 3) for at, h in enumerate(hidden)]
        return eb.sum(losses) + weighted([lstm.probabilities(h) for h in hidden[::2]])

    check(model, build)


def test_child_sum_tree_lstm():
    model = eb.ParameterCollection(dtype="float64")
    lstm = ChildSumTreeLSTM(model, IN, DIM)
    randomized(model)

    def build():
        x = [eb.input(np.cos(np.arange(IN) * (at + 1))) for at in range(3)]
        leaves = [lstm.node(word, []) for word in x]
        inner = lstm.node(x[1], leaves[:2])
        return weighted([lstm.node(x[2], [inner, leaves[2], leaves[0]])[0], lstm.node(x[0], [inner])[1]])

    check(model, build)


def test_tree_gru():
    model = eb.ParameterCollection(dtype="float64")
    gru = TreeGRU(model, IN, DIM)
    randomized(model)

    def build():
        a, b, c = (gru.leaf(eb.input(np.cos(np.arange(IN) * (at + 1)))) for at in range(3))
        inner = gru.compose(a, b)
        return weighted([gru.compose(inner, c), gru.compose(c, inner), b])

    check(model, build)


def torch_parameters(torch, model):
    return {p.name: torch.tensor(p.value(), requires_grad=True) for p in model}


def reordered(array, order):
    """Blocks of rows in another order; gates are not in the same order everywhere."""
    blocks = np.split(array, len(order))
    return np.concatenate([blocks[at] for at in order])


@pytest.mark.parametrize("name", ["LSTM", "GRU"])
def test_against_pytorch(name):
    """PyTorch's own layers over whole sequences: gates i, f, g, o, and r, z, n."""
    torch = pytest.importorskip("torch")
    model = eb.ParameterCollection(dtype="float64")
    mine = {"LSTM": LSTM, "GRU": GRU}[name](model, IN, DIM, name="layer")
    randomized(model)
    order = {"LSTM": [0, 1, 3, 2], "GRU": [1, 0, 2]}[name]  # from ours to theirs, and back
    theirs = getattr(torch.nn, name)(IN, DIM, dtype=torch.float64)
    value = {parameter.name.split(".")[1]: parameter.value() for parameter in model}
    with torch.no_grad():
        theirs.weight_ih_l0.copy_(torch.tensor(reordered(value["W"], order)))
        theirs.weight_hh_l0.copy_(torch.tensor(reordered(value["U"], order)))
        theirs.bias_ih_l0.copy_(torch.tensor(reordered(value["b"], order)))
        theirs.bias_hh_l0.zero_()
        if name == "GRU":
            theirs.bias_hh_l0[2 * DIM :] = torch.tensor(value["b_n"])
    random = np.random.default_rng(2)
    samples = [random.standard_normal((length, IN)) for length in (5, 2, 3)]
    total = sum((theirs(torch.tensor(xs)[:, None])[0] ** 2).sum() for xs in samples)
    total.backward()
    with eb.Graph(policy="sufficient", dtype="float64"):
        states = [mine.initial_state().transduce([eb.input(x) for x in xs]) for xs in samples]
        loss = eb.sum([eb.sum(eb.square(h)) for hs in states for h in hs])
    loss.backward()
    np.testing.assert_allclose(loss.value(), total.item(), rtol=1e-12)
    grads = {
        "layer.W": reordered(theirs.weight_ih_l0.grad.numpy(), order),
        "layer.U": reordered(theirs.weight_hh_l0.grad.numpy(), order),
        "layer.b": reordered(theirs.bias_ih_l0.grad.numpy(), order),
    }
    if name == "GRU":
        grads["layer.b_n"] = theirs.bias_hh_l0.grad.numpy()[2 * DIM :]
    compare(model, grads, rtol=1e-8, atol=1e-10)


def test_tree_lstm_against_pytorch():
    torch = pytest.importorskip("torch")
    model = eb.ParameterCollection(dtype="float64")
    mine = TreeLSTM(model, words=4, labels=3, dim=DIM)
    randomized(model)
    p = torch_parameters(torch, model)

    def state(words, children, node):
        if words[node] is not None:
            i, o, u = torch.split(p["W"] @ p["embed"][words[node]] + p["b_leaf"], DIM)
            c = torch.sigmoid(i) * torch.tanh(u)
        else:
            (h1, c1), (h2, c2) = (state(words, children, child) for child in children[node])
            i, o, f1, f2, u = torch.split(p["U"] @ torch.cat([h1, h2]) + p["b"], DIM)
            c = torch.sigmoid(i) * torch.tanh(u) + torch.sigmoid(f1) * c1 + torch.sigmoid(f2) * c2
        return torch.sigmoid(o) * torch.tanh(c), c

    total = 0
    for words, children in TREES:
        for node in range(len(words)):
            scores = p["W_out"] @ state(words, children, node)[0] + p["b_out"]
            total = total + torch.nn.functional.cross_entropy(scores[None], torch.tensor([node % 3]))
    total.backward()
    with eb.Graph(policy="sufficient", dtype="float64"):
        loss = eb.sum(
            [
                eb.cross_entropy(mine.scores(h), node % 3)
                for words, children in TREES
                for node, h in enumerate(mine.hidden(words, children))
            ]
        )
    loss.backward()
    np.testing.assert_allclose(loss.value(), total.item(), rtol=1e-12)
    compare(model, {name: x.grad.numpy() for name, x in p.items()}, rtol=1e-8, atol=1e-10)
