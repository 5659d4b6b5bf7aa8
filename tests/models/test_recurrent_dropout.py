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
    CoupledLSTM,
    PeepholeLSTM,
    Stacked,
    TreeGRU,
    TreeLSTM,
)
from tests.models.test_recurrent import sigmoid, values_of
from tests.uniform import uniform

IN, DIM, RATE = 3, 4, 0.4


def masks(seed, n, dim=DIM):
    """The first masks of a graph."""
    first = first_draw(seed, 0)
    return (uniform(np, np.arange(first, first + n), (n, dim)) >= RATE) / (1 - RATE)


def inputs(n=5):
    return np.random.default_rng(1).normal(size=(n, IN))


def test_an_lstm_drops_new_values_alone():
    model = eb.ParameterCollection(seed=2)
    lstm = LSTM(model, IN, DIM, name="lstm", recurrent_dropout=RATE)
    with eb.Graph(policy="depth", seed=9):
        outputs = lstm.initial_state().transduce([eb.input(x) for x in inputs()])
        got = eb.forward(outputs)
    p = values_of(model, "lstm")
    h = c = np.zeros(DIM)
    for x, y, mask in zip(inputs(), got, masks(9, 5), strict=True):
        i, f, o, u = np.split(p["W"] @ x + p["U"] @ h + p["b"], 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(u) * mask
        h = sigmoid(o) * np.tanh(c)
        np.testing.assert_allclose(y, h, atol=1e-6)


def test_a_gru_drops_new_values_alone():
    model = eb.ParameterCollection(seed=2)
    layer = GRU(model, IN, DIM, name="gru", recurrent_dropout=RATE)
    with eb.Graph(policy="depth", seed=9):
        got = eb.forward(layer.initial_state().transduce([eb.input(x) for x in inputs()]))
    p = values_of(model, "gru")
    h = np.zeros(DIM)
    for x, y, mask in zip(inputs(), got, masks(9, 5), strict=True):
        z, r, n = np.split(p["W"] @ x + p["b"], 3)
        uz, ur, un = np.split(p["U"] @ h, 3)
        z, r = sigmoid(z + uz), sigmoid(r + ur)
        h = (1 - z) * np.tanh(n + r * (un + p["b_n"])) * mask + z * h
        np.testing.assert_allclose(y, h, atol=1e-6)


def test_a_stack_drops_between_layers():
    model = eb.ParameterCollection(seed=2)
    low, high = LSTM(model, IN, DIM, name="low"), LSTM(model, DIM, DIM, name="high")
    stack = Stacked([low, high], dropout=RATE)
    with eb.Graph(policy="depth", seed=9):
        xs = [eb.input(x) for x in inputs()]
        got = eb.forward(stack.initial_state().transduce(xs))
    with eb.Graph(policy="depth", seed=9):
        xs = [eb.input(x) for x in inputs()]
        states, state = [], stack.initial_state()
        for x in xs:
            state = state.add_input(x)
            states.append(state.output())
        same = eb.forward(states)
    with eb.Graph(policy="depth"):
        between = low.initial_state().transduce([eb.input(x) for x in inputs()])
        want = eb.forward(
            high.initial_state().transduce([y * eb.input(m) for y, m in zip(between, masks(9, 5), strict=True)])
        )
    np.testing.assert_allclose(got, want, atol=1e-6)
    np.testing.assert_allclose(same, want, atol=1e-6)


def networks(**dropped):
    """By name: from a collection, a function that records a loss."""

    def reading(layer):
        return lambda: eb.sum([eb.sum(h) for h in layer.transduce([eb.input(x) for x in inputs()])])

    def tree(model):
        lstm = ChildSumTreeLSTM(model, IN, DIM, **dropped)

        def loss():
            x = eb.ones(IN)
            leaves = [lstm.node(x, []) for _ in range(3)]
            return eb.sum(lstm.node(x, [lstm.node(x, leaves[:2]), leaves[2]])[0])

        return loss

    def tree_gru(model):
        gru = TreeGRU(model, IN, DIM, **dropped)
        return lambda: eb.sum(gru.compose(gru.leaf(eb.ones(IN)), gru.leaf(eb.zeros(IN))))

    def tree_lstm(model):
        lstm = TreeLSTM(model, 9, 5, DIM, **dropped)
        return lambda: lstm.loss([3, 7, None, 2, None], [(), (), (0, 1), (), (2, 3)], [0, 1, 2, 3, 4])

    def stacked(model):
        rate = dropped["recurrent_dropout"]
        layers = [LSTM(model, IN, DIM, name="low"), GRU(model, DIM, DIM, name="high", **dropped)]
        both = Bidirectional(Stacked(layers, dropout=rate), LSTM(model, IN, DIM, name="left", **dropped))
        return reading(both)

    def tagger(model):
        made = BiLSTMTagger(model, 9, 3, DIM, dropout=dropped["recurrent_dropout"])
        return lambda: made.loss([3, 7, 2], [0, 2, 1])

    # A state is made in a graph.
    def late(kind):
        def make(model):
            layer = kind(model, IN, DIM, **dropped)
            return lambda: reading(layer.initial_state())()

        return make

    kinds = {kind.__name__: late(kind) for kind in (LSTM, CoupledLSTM, PeepholeLSTM, GRU)}
    return kinds | {"trees": tree, "TreeGRU": tree_gru, "TreeLSTM": tree_lstm, "stacked": stacked, "tagger": tagger}


def run(name, rate, **switches):
    eb.seed(4)
    model = eb.ParameterCollection(seed=3)
    record = networks(recurrent_dropout=rate)[name](model)
    with eb.options(**switches), eb.Graph(policy="depth") as graph:
        loss = record()
        loss.backward()
        return [loss.value(), *(parameter.grad() for parameter in model)], graph.report().nodes


@pytest.mark.parametrize("name", networks(recurrent_dropout=0))
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


@pytest.mark.parametrize("rate", [-0.1, 1, 1.5, float("nan"), "0.5", None])
def test_bad_rates(rate):
    for make in (
        lambda model: LSTM(model, IN, DIM, recurrent_dropout=rate),
        lambda model: TreeGRU(model, IN, DIM, recurrent_dropout=rate),
        lambda model: TreeLSTM(model, 9, 5, DIM, recurrent_dropout=rate),
        lambda model: Stacked([LSTM(model, IN, DIM)], dropout=rate),
    ):
        with pytest.raises(eb.EdBatchError, match=r"dropout: expected a rate in \[0, 1\)"):
            make(eb.ParameterCollection())
