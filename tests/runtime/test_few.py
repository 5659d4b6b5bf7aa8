"""Few pending nodes, in the order in which they were recorded; and going back through many runs as one plan."""

import numpy as np
import pytest

import edbatch as eb

DIM = 5


@pytest.fixture
def model():
    found = eb.ParameterCollection(seed=0)
    found.add_parameters((DIM, DIM), name="W")
    found.add_parameters(DIM, name="b")
    return found


def chain(model, length, x=None):
    """Two nodes a link."""
    h = eb.input(np.linspace(-1, 1, DIM)) if x is None else x
    for _ in range(length):
        h = eb.tanh(model["W"] @ h)
    return h


def test_a_parameter_that_changed_after_the_first_of_many_runs(model):
    with eb.Graph(policy="sufficient"):
        h = chain(model, 1)
        h.value()
        h = eb.tanh(h * 2)
        h.value()
        model["b"].set_value(np.zeros(DIM))
        h = h + model["b"]
        h.value()
        loss = eb.sum(h)
        loss.backward()  # which reads no b
        model.zero_grad()
        model["W"].set_value(np.zeros((DIM, DIM)))
        y = eb.sum(eb.tanh(model["W"] @ h))
        y.value()
        y.backward()  # going back to the first W needs no value of it: nothing wants the gradient of the input
        z = eb.sum(model["W"] @ (model["W"] @ h))
        z.value()
        model["W"].set_value(np.ones((DIM, DIM)))
        with pytest.raises(eb.EdBatchError, match="W changed after the graph had run"):
            z.backward()
