"""`renew_cg(immediate_compute=True, check_validity=True)` refuses what is not finite where it is made."""

import numpy as np
import pytest

import edbatch.dynet as dy


@pytest.fixture
def graph():
    return dy.renew_cg(immediate_compute=True, check_validity=True)


@pytest.mark.parametrize(
    "call",
    [
        lambda: dy.log(dy.inputVector([-1.0])),
        lambda: dy.cdiv(dy.inputVector([1.0]), dy.inputVector([0.0])),
        lambda: dy.inputVector([1.0]) / 0,
        lambda: dy.exp(dy.inputVector([1000.0])),
        lambda: dy.inputVector([np.nan]),
        lambda: dy.log_softmax(dy.inputVector([1.0, 2.0]), [1]),
        lambda: dy.log(dy.inputTensor([[1.0, -1.0]], batched=True)),
    ],
)
def test_what_is_not_finite_is_an_error_at_once(graph, call):
    with pytest.raises(RuntimeError, match="NaN or Inf detected"):
        call()


def test_the_graph_goes_on_after_it(graph):
    x = dy.inputVector([1.0])
    with pytest.raises(RuntimeError):
        dy.log(x - 1)
    assert (x * 2).value() == 2.0


def test_only_with_both_and_until_renewed(graph):
    for renewed in ({}, {"check_validity": True}, {"immediate_compute": True}, {"autobatching": True}):
        dy.renew_cg(**renewed)
        assert np.isnan(dy.log(dy.inputVector([-1.0])).value())
        dy.cg().renew(True, True)
        with pytest.raises(RuntimeError):
            dy.log(dy.inputVector([-1.0]))


def test_what_is_finite_is_as_without(graph):
    model = dy.ParameterCollection()
    builder, table = dy.LSTMBuilder(2, 3, 4, model), model.add_lookup_parameters((5, 3))

    def loss():
        xs = dy.lookup_batch(table, [1, 2, 3])
        ys = builder.initial_state().transduce([xs, table[1]])
        return dy.sum_batches(dy.sum_elems(ys[-1]))

    checked = loss()
    checked.backward()
    value, gradient = checked.value(), table.grad_as_array()
    model.reset_gradient()
    dy.renew_cg()
    plain = loss()
    plain.backward()
    np.testing.assert_allclose(plain.value(), value, rtol=1e-5)
    np.testing.assert_allclose(table.grad_as_array(), gradient, rtol=1e-5, atol=1e-7)


def test_inputs_may_be_set_and_checkpoints_made(graph):
    x = dy.inputVector([1.0, 2.0])
    y = dy.log(x)
    x.set([3.0, 4.0])
    np.testing.assert_allclose(y.value(), np.log([3.0, 4.0]), rtol=1e-6)
    dy.cg_checkpoint()
    with pytest.raises(RuntimeError, match="NaN"):
        dy.log(-x)
    dy.cg_revert()
    x.set([-1.0, 1.0])
    with pytest.raises(RuntimeError, match="NaN"):
        y.value()


def test_padding_of_windows_is_finite(graph):
    image = dy.inputTensor(-np.ones((5, 5, 1)))
    assert dy.maxpooling2d(image, [2, 2], [2, 2], False).npvalue().max() == -1
