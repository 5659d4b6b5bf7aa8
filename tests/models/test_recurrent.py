"""Recurrent layers against their equations in PyTorch, batched over samples of any length."""

from itertools import accumulate

import numpy as np
import pytest

import edbatch as eb
from edbatch.models import GRU, LSTM, Bidirectional, SimpleRNN, Stacked, State
from tests.models.against_torch import check, gru, lstm, new_model, outputs

IN, DIM = 3, 4
SEQUENCES = [np.random.default_rng(length).normal(size=(length, IN)) for length in (6, 1, 3, 5, 2)]


def rnn(torch, p, name, x, h):
    return (torch.tanh(p[f"{name}.W"] @ x + p[f"{name}.U"] @ h + p[f"{name}.b"]),)


LAYERS = {LSTM: lstm, GRU: gru, SimpleRNN: rnn}


@pytest.mark.parametrize("kind", LAYERS)
def test_layer(kind):
    """From given vectors; the products with inputs are one batch, and a step is one."""
    layer = kind(model := new_model(), IN, DIM, name="layer")
    start = np.random.default_rng(9).normal(size=(kind.states, DIM))

    def build():
        states = [layer.initial_state(*map(eb.input, start)) for _ in SEQUENCES]
        return [y for state, xs in zip(states, SEQUENCES, strict=True) for y in state.transduce(map(eb.input, xs))]

    def wanted(torch, p):
        state = torch.from_numpy(start)
        of_samples = [outputs(torch, p, "layer", torch.from_numpy(xs), LAYERS[kind], state) for xs in SEQUENCES]
        return [y for ys in of_samples for y in ys]

    assert check(model, build, wanted).batches == 1 + 6


def test_stacked_and_bidirectional():
    model = new_model()
    right = Stacked([LSTM(model, IN, DIM, name="r0"), GRU(model, DIM, DIM, name="r1")])
    both = Bidirectional(right, GRU(model, IN, DIM, name="l"))

    def wanted(torch, p):
        found = []
        for xs in map(torch.from_numpy, SEQUENCES):
            high = outputs(torch, p, "r1", outputs(torch, p, "r0", xs), gru)
            back = outputs(torch, p, "l", xs.flip(0), gru)[::-1]
            found += [torch.cat(pair) for pair in zip(high, back, strict=True)]
        return found

    check(model, lambda: [y for xs in SEQUENCES for y in both.transduce(list(map(eb.input, xs)))], wanted)


def test_a_chain_of_cells_gathers_nothing_in_the_recurrence():
    made = LSTM(eb.ParameterCollection(), IN, DIM)
    with eb.Graph(policy="sufficient") as graph:
        eb.forward([made.initial_state().transduce([eb.input(x) for x in xs])[-1] for xs in SEQUENCES])
    assert graph.report().gathered == 0


@pytest.mark.parametrize("layer", [LSTM, GRU])
def test_reading_gives_outputs_and_the_state_to_go_on_from(layer):
    made = layer(eb.ParameterCollection(seed=0), input_dim=3, dim=2)
    with eb.Graph():
        xs = [eb.input(np.full(3, value)) for value in (1.0, 2.0, 3.0)]
        outputs, state = made.initial_state().read(xs[:2])
        stepped = list(accumulate(xs, State.add_input, initial=made.initial_state()))[1:]
        got = eb.forward([*outputs, state.add_input(xs[2]).output()])
        np.testing.assert_allclose(got, eb.forward([one.output() for one in stepped]), rtol=1e-5)
        none, same = state.read([])
        assert none == []
        assert [v.value().tolist() for v in same.vectors] == [v.value().tolist() for v in state.vectors]
