"""Recurrent layers and tree networks against their equations in float64 NumPy, batched over samples of any length."""

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
)

IN, DIM = 3, 4


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(p, x, h, c):
    i, f, o, u = np.split(p["W"] @ x + p["U"] @ h + p["b"], 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(u)
    return sigmoid(o) * np.tanh(c), c


def coupled(p, x, h, c):
    f, o, u = np.split(p["W"] @ x + p["U"] @ h + p["b"], 3)
    c = sigmoid(f) * c + (1 - sigmoid(f)) * np.tanh(u)
    return sigmoid(o) * np.tanh(c), c


def peephole(p, x, h, c):
    i, f, o, u = np.split(p["W"] @ x + p["U"] @ h + p["b"], 4)
    c = sigmoid(f + p["p_f"] * c) * c + sigmoid(i + p["p_i"] * c) * np.tanh(u)
    return sigmoid(o + p["p_o"] * c) * np.tanh(c), c


def gru(p, x, h):
    z, r, n = np.split(p["W"] @ x + p["b"], 3)
    uz, ur, un = np.split(p["U"] @ h, 3)
    z, r = sigmoid(z + uz), sigmoid(r + ur)
    return ((1 - z) * np.tanh(n + r * (un + p["b_n"])) + z * h,)


def rnn(p, x, h):
    return (np.tanh(p["W"] @ x + p["U"] @ h + p["b"]),)


LAYERS = [(LSTM, lstm, 2), (CoupledLSTM, coupled, 2), (PeepholeLSTM, peephole, 2), (GRU, gru, 1), (SimpleRNN, rnn, 1)]


def randomized(model):
    """Parameters away from zero, biases too; by name without prefix."""
    random = np.random.default_rng(5)
    for parameter in model:
        parameter.set_value(random.normal(0, 0.6, parameter.shape))
    return model


def values_of(model, prefix):
    return {p.name.removeprefix(prefix + "."): p.value() for p in model if p.name.startswith(prefix + ".")}


def sequences():
    random = np.random.default_rng(0)
    return [random.normal(size=(length, IN)) for length in (6, 1, 3, 6, 2)]


def run(step, p, xs, start=None):
    state = (np.zeros(DIM),) * (2 if step in (lstm, coupled, peephole) else 1) if start is None else start
    outputs = []
    for x in xs:
        state = step(p, x, *state)
        outputs.append(state[0])
    return outputs, state


@pytest.mark.parametrize("policy", ["none", "agenda", "sufficient"])
@pytest.mark.parametrize(("layer", "step", "states"), LAYERS)
def test_layer(layer, step, states, policy):
    model = eb.ParameterCollection(dtype="float64")
    made = layer(model, IN, DIM, name="layer")
    p = values_of(randomized(model), "layer")
    with eb.Graph(policy=policy, dtype="float64") as graph:
        got = []
        for xs in sequences():
            got += made.initial_state().transduce([eb.input(x) for x in xs])
        got = eb.forward(got)
    want = [y for xs in sequences() for y in run(step, p, xs)[0]]
    np.testing.assert_allclose(got, want, rtol=1e-10)
    if policy == "sufficient":  # the projections in one batch, then a step at a time
        assert graph.report().batches == 1 + 6


@pytest.mark.parametrize(("layer", "step", "states"), LAYERS)
def test_initial_state_and_add_input(layer, step, states):
    model = eb.ParameterCollection(dtype="float64")
    made = layer(model, IN, DIM)
    name = next(iter(model)).name.split(".")[0]
    p = values_of(randomized(model), name)
    start = tuple(np.random.default_rng(9).normal(size=(states, DIM)))
    xs = sequences()[2]
    with eb.Graph(policy="sufficient", dtype="float64"):
        before = made.initial_state(*[eb.input(vector) for vector in start])
        after = before.add_input(eb.input(xs[0])).add_input(eb.input(xs[1]))
        got = eb.forward([*before.vectors, *after.vectors])
    np.testing.assert_allclose(got, [*start, *run(step, p, xs[:2], start)[1]], rtol=1e-10)


def test_wrong_initial_state():
    made = LSTM(eb.ParameterCollection(), IN, DIM)
    with eb.Graph(), pytest.raises(eb.EdBatchError, match=r"expected 2 vectors of size 4, got \(4,\)"):
        made.initial_state(eb.zeros(4))
    with pytest.raises(eb.EdBatchError, match="at least one layer"):
        Stacked([])


def test_stacked_and_bidirectional():
    model = eb.ParameterCollection(dtype="float64")
    right = Stacked([LSTM(model, IN, DIM, name="r0"), GRU(model, DIM, DIM, name="r1")])
    left = SimpleRNN(model, IN, DIM, name="l")
    both = Bidirectional(right, left)
    randomized(model)
    xs = sequences()[0]
    with eb.Graph(policy="sufficient", dtype="float64"):
        got = eb.forward(both.transduce([eb.input(x) for x in xs]))
    low = run(lstm, values_of(model, "r0"), xs)[0]
    high = run(gru, values_of(model, "r1"), low)[0]
    back = run(rnn, values_of(model, "l"), xs[::-1])[0][::-1]
    np.testing.assert_allclose(got, [np.append(a, b) for a, b in zip(high, back, strict=True)], rtol=1e-10)


def test_a_chain_of_cells_gathers_nothing_in_the_recurrence():
    model = eb.ParameterCollection()
    made = LSTM(model, IN, DIM)
    with eb.Graph(policy="sufficient") as graph:
        eb.forward([made.initial_state().transduce([eb.input(x) for x in xs])[-1] for xs in sequences()])
    assert graph.report().gathered == 0


def test_child_sum_tree_lstm():
    model = eb.ParameterCollection(dtype="float64")
    made = ChildSumTreeLSTM(model, IN, DIM)
    p = values_of(randomized(model), "tree")
    random = np.random.default_rng(2)

    def oracle(x, children):
        f_x, i, o, u = np.split(p["W"] @ x + p["b"], 4)
        h_sum = sum((h for h, _ in children), np.zeros(DIM))
        i, o, u = (a + b for a, b in zip((i, o, u), np.split(p["U"] @ h_sum, 3), strict=True))
        c = sigmoid(i) * np.tanh(u) + sum(sigmoid(f_x + p["U_f"] @ h) * c for h, c in children)
        return sigmoid(o) * np.tanh(c), c

    with eb.Graph(policy="sufficient", dtype="float64") as graph:
        got, want = [], []
        for _ in range(4):
            nodes = []
            for _ in range(9):
                n = int(random.integers(0, min(4, len(nodes)) + 1))
                chosen = random.permutation(len(nodes))[:n].tolist()
                x = random.normal(size=IN)
                state = made.node(eb.input(x), [nodes[i][0] for i in chosen])
                nodes.append((state, oracle(x, [nodes[i][1] for i in chosen])))
            got += [h for (h, _), _ in nodes]
            want += [h for _, (h, _) in nodes]
        got = eb.forward(got)
    np.testing.assert_allclose(got, want, rtol=1e-10)
    assert graph.report().batches == graph.report().lower_bound


def test_tree_gru():
    model = eb.ParameterCollection(dtype="float64")
    made = TreeGRU(model, IN, DIM)
    p = values_of(randomized(model), "tree")

    def leaf(x):
        z, n = np.split(p["W"] @ x + p["b_leaf"], 2)
        return sigmoid(z) * np.tanh(n)

    def compose(h1, h2):
        r1, r2, *m = np.split(p["U"] @ np.append(h1, h2) + p["b"], 5)
        n = np.tanh(p["U_n"] @ np.append(sigmoid(r1) * h1, sigmoid(r2) * h2) + p["b_n"])
        mixture = np.exp(m) / np.exp(m).sum(axis=0)
        return mixture[0] * h1 + mixture[1] * h2 + mixture[2] * n

    xs = np.random.default_rng(3).normal(size=(4, IN))
    with eb.Graph(policy="sufficient", dtype="float64"):
        a, b, c, d = (made.leaf(eb.input(x)) for x in xs)
        got = made.compose(made.compose(a, b), made.compose(made.compose(a, c), d)).value()
    a, b, c, d = (leaf(x) for x in xs)
    np.testing.assert_allclose(got, compose(compose(a, b), compose(compose(a, c), d)), rtol=1e-10)


@pytest.mark.parametrize("layer", [LSTM, GRU])
def test_reading_gives_outputs_and_the_state_to_go_on_from(layer):
    made = layer(eb.ParameterCollection(seed=0), input_dim=3, dim=2)
    with eb.Graph():
        xs = [eb.input(np.full(3, value)) for value in (1.0, 2.0, 3.0)]
        outputs, state = made.initial_state().read(xs[:2])
        stepped = made.initial_state().add_inputs(xs)
        assert [y.value().tolist() for y in outputs] == [one.output().value().tolist() for one in stepped[:2]]
        assert state.add_input(xs[2]).output().value().tolist() == stepped[2].output().value().tolist()
        none, same = state.read([])
        assert none == []
        assert [v.value().tolist() for v in same.vectors] == [v.value().tolist() for v in state.vectors]
