"""Dropout in recurrent layers and trees: the masks that the seed gives, where they belong; none in evaluation."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.draws import first_draw
from edbatch.models import (
    GRU,
    LSTM,
    Bidirectional,
    BiLSTMTagger,
    ChildSumTreeLSTM,
    Stacked,
    TreeGRU,
    TreeLSTM,
)
from tests.uniform import uniform

IN, DIM, RATE = 3, 4, 0.4


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(p, x, mask, h, c):
    i, f, o, u = np.split(p["layer.W"] @ x + p["layer.U"] @ h + p["layer.b"], 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(u) * mask
    return sigmoid(o) * np.tanh(c), c


def gru(p, x, mask, h):
    z, r, n = np.split(p["layer.W"] @ x + p["layer.b"], 3)
    u_z, u_r, u_n = np.split(p["layer.U"] @ h, 3)
    z, r = sigmoid(z + u_z), sigmoid(r + u_r)
    return ((1 - z) * np.tanh(n + r * (u_n + p["layer.b_n"])) * mask + z * h,)


def masks(seed, n, dim=DIM):
    """The first masks of a graph."""
    first = first_draw(seed, 0)
    return (uniform(np, np.arange(first, first + n), (n, dim)) >= RATE) / (1 - RATE)


def inputs(n=5):
    return np.random.default_rng(1).normal(size=(n, IN))


@pytest.mark.parametrize(("kind", "step"), [(LSTM, lstm), (GRU, gru)])
def test_new_values_alone_are_dropped(kind, step):
    layer = kind(model := eb.ParameterCollection(seed=2), IN, DIM, name="layer", recurrent_dropout=RATE)
    with eb.Graph(policy="depth", seed=9):
        got = eb.forward(layer.initial_state().transduce([eb.input(x) for x in inputs()]))
    p = {parameter.name: parameter.value() for parameter in model}
    state = (np.zeros(DIM),) * kind.states
    for x, y, mask in zip(inputs(), got, masks(9, 5), strict=True):
        state = step(p, x, mask, *state)
        np.testing.assert_allclose(y, state[0], atol=1e-6)


def test_a_stack_drops_between_layers():
    model = eb.ParameterCollection(seed=2)
    low, high = LSTM(model, IN, DIM, name="low"), LSTM(model, DIM, DIM, name="high")
    stack, xs = Stacked([low, high], dropout=RATE), inputs()
    with eb.Graph(policy="depth", seed=9):
        got = eb.forward(stack.initial_state().transduce([eb.input(x) for x in xs]))
    with eb.Graph(policy="depth", seed=9):
        states = [stack.initial_state()]
        for x in xs:
            states.append(states[-1].add_input(eb.input(x)))
        same = eb.forward([state.output() for state in states[1:]])
    with eb.Graph(policy="depth"):
        between = low.initial_state().transduce([eb.input(x) for x in xs])
        dropped = [y * eb.input(mask) for y, mask in zip(between, masks(9, 5), strict=True)]
        want = eb.forward(high.initial_state().transduce(dropped))
    np.testing.assert_allclose(got, want, atol=1e-6)
    np.testing.assert_allclose(same, want, atol=1e-6)


def reading(layer):
    return eb.sum([eb.sum(h) for h in layer.transduce([eb.input(x) for x in inputs()])])


def tree(model, rate):
    lstm = ChildSumTreeLSTM(model, IN, DIM, recurrent_dropout=rate)

    def loss():
        leaves = [lstm.node(eb.ones(IN), []) for _ in range(3)]
        return eb.sum(lstm.node(eb.ones(IN), [lstm.node(eb.ones(IN), leaves[:2]), leaves[2]])[0])

    return loss


def tree_gru(model, rate):
    gru = TreeGRU(model, IN, DIM, recurrent_dropout=rate)
    return lambda: eb.sum(gru.compose(gru.leaf(eb.ones(IN)), gru.leaf(eb.zeros(IN))))


def tree_lstm(model, rate):
    lstm = TreeLSTM(model, 9, 5, DIM, recurrent_dropout=rate)
    return lambda: lstm.loss([3, 7, None, 2, None], [(), (), (0, 1), (), (2, 3)], [0, 1, 2, 3, 4])


def stacked(model, rate):
    layers = [LSTM(model, IN, DIM, name="low"), GRU(model, DIM, DIM, name="high", recurrent_dropout=rate)]
    left = LSTM(model, IN, DIM, name="left", recurrent_dropout=rate)
    return lambda: reading(Bidirectional(Stacked(layers, dropout=rate), left))


def tagger(model, rate):
    made = BiLSTMTagger(model, 9, 3, DIM, dropout=rate)
    return lambda: made.loss([3, 7, 2], [0, 2, 1])


def recurrent(kind):
    def make(model, rate):
        layer = kind(model, IN, DIM, recurrent_dropout=rate)
        return lambda: reading(layer.initial_state())

    return make


# From a collection and a rate a function that records a loss.
NETWORKS = {
    **{kind.__name__: recurrent(kind) for kind in (LSTM, GRU)},
    **{make.__name__: make for make in (tree, tree_gru, tree_lstm, stacked, tagger)},
}


def run(name, rate, **switches):
    eb.seed(4)
    model = eb.ParameterCollection(seed=3)
    record = NETWORKS[name](model, rate)
    with eb.options(**switches), eb.Graph(policy="depth") as graph:
        loss = record()
        loss.backward()
        return [loss.value(), *(parameter.grad() for parameter in model)], graph.report().nodes


@pytest.mark.parametrize("name", NETWORKS)
def test_cells_and_evaluation(name):
    dropped, _ = run(name, RATE)
    plain, nodes = run(name, 0.0)
    for got, want in zip(dropped, run(name, RATE, cells=False)[0], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    evaluated, of_evaluation = run(name, RATE, training=False)
    for got, want in zip(evaluated, plain, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    assert of_evaluation == nodes
    assert abs(dropped[0] - plain[0]) > 1e-4
