"""Graphs that compute once more, with other inputs and parameters."""

import numpy as np

import edbatch as eb
from edbatch.models.lstm import LSTM


def test_parameters_and_inputs_are_those_of_now():
    model = eb.ParameterCollection()
    W = model.add_parameters((2, 2), init=1.0)
    with eb.Graph() as graph:
        x, z = eb.input([1.0, 2.0]), eb.input([5.0, 5.0])
        y = W @ x + z
        assert not graph.is_behind
        assert y.value().tolist() == [8.0, 8.0]
        W.set_value(np.eye(2))
        assert graph.is_behind
        graph.reset({x.id: np.array([3.0, 4.0])})
        later = y * eb.input([2.0, 1.0])
        assert later.value().tolist() == [16.0, 9.0]
        assert y.value().tolist() == [8.0, 9.0]
        assert not graph.is_behind


def test_runs_that_save_have_the_same_gradients():
    gradients = []
    for saving in (False, True):
        W = eb.ParameterCollection(seed=1).add_parameters((3, 3))
        with eb.Graph() as graph:
            loss = eb.sum(eb.tanh(W @ eb.tanh(W @ eb.ones(3))))
            graph.run(saving=saving)
        loss.backward()
        gradients.append(W.grad())
    np.testing.assert_allclose(*gradients, rtol=1e-6)


def test_cells_that_were_split():
    """Their parts have ids of their own; what was recorded later keeps its."""
    model = eb.ParameterCollection(seed=2)
    rnn = LSTM(model, 3, 4)

    def run(given, resets):
        with eb.Graph() as graph:
            xs = [eb.input(x) for x in (given if not resets else np.zeros((6, 3)))]
            states = [rnn.initial_state()]
            for x in xs:
                states.append(states[-1].add_input(x))
            read = states[-1].vectors[0].value()
            later = eb.sum([state.vectors[0] for state in states[1:]]) + eb.input([1.0, 2.0, 3.0, 4.0])
            assert later.value().shape == (4,)
            if resets:
                graph.reset({x.id: array for x, array in zip(xs, given, strict=True)})
                again = later * 2.0
                return [states[-1].vectors[0].value(), later.value(), again.value() / 2]
            return [read, later.value(), later.value()]

    given = np.cos(np.arange(18.0)).reshape(6, 3)
    for found, expected in zip(run(given, True), run(given, False), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)
