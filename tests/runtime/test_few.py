"""Going back through many runs as one plan."""

import numpy as np
import pytest

import edbatch as eb

DIM = 5


def test_a_parameter_that_changed_after_the_first_of_many_runs():
    model = eb.ParameterCollection(seed=0)
    W, b = model.add_parameters((DIM, DIM), name="W"), model.add_parameters(DIM, name="b")
    with eb.Graph(policy="sufficient"):
        h = eb.tanh(W @ eb.input(np.linspace(-1, 1, DIM)))
        h.value()
        h = eb.tanh(h * 2)
        h.value()
        b.set_value(np.zeros(DIM))
        h = h + b
        h.value()
        loss = eb.sum(h)
        loss.backward()  # which reads no b
        model.zero_grad()
        W.set_value(np.zeros((DIM, DIM)))
        y = eb.sum(eb.tanh(W @ h))
        y.value()
        y.backward()  # going back to the first W needs no value of it: nothing wants the gradient of the input
        z = eb.sum(W @ (W @ h))
        z.value()
        W.set_value(np.ones((DIM, DIM)))
        with pytest.raises(eb.EdBatchError, match="W changed after the graph had run"):
            z.backward()
