"""Bad arguments are refused, by an error of EdBatch's, Python's or NumPy's own."""

import numpy as np
import pytest

import edbatch.dynet as dy


@pytest.fixture
def scope():
    model = dy.ParameterCollection()
    return {
        "dy": dy,
        "np": np,
        "m": model,
        "E": model.add_lookup_parameters((9, 4)),
        "D": dy.LSTMBuilder(1, 4, 4, model),
        "v": dy.inputVector([1, 2, 3]),
        "M": dy.inputTensor(np.ones((2, 3))),
    }


REFUSED = """
dy.dropout(v, 1.5); dy.dropout(v, -0.5); dy.dropout(v, float("nan"))
dy.noise(v, -1); dy.inputVector(None); dy.inputVector([None])
dy.inputVector("a"); dy.pick(v, 1.5); dy.pick(v, None); dy.pick(v, "a")
dy.pick(v, -1); dy.pick(v, 0, 5); dy.pick(None, 0); dy.lookup(E, 1.9); dy.lookup(E, "a"); dy.lookup(E, None)
dy.lookup(E, -1); E[-1]; E["a"]; dy.lookup_batch(E, [1.9]); dy.lookup_batch(E, [-1])
dy.lookup_batch(E, None); dy.hinge_dim(M, [0]); dy.hinge_dim(M, [0, 1, 0, 1]); dy.hinge_dim(M, [5, 0, 0])
dy.hinge_dim(v, [0]); dy.sparse_inputTensor([[1, 2]], [1.0], (3,)); dy.sparse_inputTensor([[9]], [1.0], (3,))
dy.sparse_inputTensor([[1]], [1.0], (3, 3))
v["a"]; v[None]; v[9]; dy.LSTMBuilder(0, 3, 3, m)
dy.LSTMBuilder(-1, 3, 3, m); dy.LSTMBuilder(1, 0, 3, m); dy.LSTMBuilder(1, 3, 3, None); D.initial_state([v])
D.initial_state([v, v]); D.initial_state([v, v, v]); D.initial_state(3); D.initial_state([None])
D.initial_state().add_input(None); D.initial_state().add_input(v); dy.reshape(v, ())
dy.reshape(v, (2,)); dy.reshape(v, (0,)); dy.reshape(v, (-1,)); dy.reshape(v, (1,)); dy.concatenate([None])
dy.concatenate([v, None]); dy.esum([None]); dy.log_softmax(v, [5])
dy.log_softmax(v, []); m.add_parameters((0,)); m.add_parameters(-1); m.add_parameters("a"); m.add_parameters(None)
m.add_parameters((2, 2), init="nope"); m.add_parameters(2, name=3); m.add_subcollection(3)
dy.poisson_loss(dy.scalarInput(1), -3); dy.poisson_loss(dy.scalarInput(1), 1.5); E.init_row(99, [1, 2, 3, 4])
E.init_row(0, [1, 2]); E.init_row(-1, [1, 2, 3, 4]); dy.random_normal(3, 0, -1)
dy.random_uniform(3, 2, 1); dy.scalarInput("a"); dy.vecInput(-1); dy.inputTensor(None); dy.select_rows(v, [9])
dy.select_rows(v, []); dy.fold_rows(M, 3); dy.kmh_ngram(M, 9)
dy.weight_norm(M, v)
dy.pick_batch_elem(v, 1); dy.pick_batch_elems(v, []); dy.pick_batch_elems(v, [0.5])
dy.pickneglogsoftmax(v, 1.5); dy.pickneglogsoftmax_batch(v, []); dy.hinge(v, "a")
dy.scale_gradient(v, "a"); dy.transpose(v, [5, 6]); dy.StandardSoftmaxBuilder(0, 3, m)
"""


@pytest.mark.parametrize("call", [call.strip() for call in REFUSED.replace("\n", ";").split(";") if call.strip()])
def test_bad_arguments(scope, call):
    with pytest.raises((ValueError, TypeError, IndexError, AttributeError)):
        eval(call, scope)


def test_whole_numbers_may_be_floats(scope):
    assert dy.pick(scope["v"], 1.0).value() == 2.0
    assert dy.lookup_batch(scope["E"], [np.float32(1.0), 2]).dim() == ((4,), 2)
