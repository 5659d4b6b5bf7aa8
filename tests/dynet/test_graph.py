"""The implicit graph: renewed, read in every way, computed anew when inputs or parameters have changed."""

import numpy as np
import pytest

import edbatch as eb
import edbatch.dynet as dy
from edbatch.errors import EdBatchError


@pytest.fixture
def model():
    dy.reset_random_seed(1)
    return dy.ParameterCollection()


class TestStale:
    def test_reads_are_refused(self):
        x = dy.inputVector([1, 2, 3])
        y = dy.tanh(x)
        xs = dy.inputTensor(np.ones((2, 3)), batched=True)
        dy.renew_cg()
        for stale in (x, y, xs):
            for read in ("value", "npvalue", "vec_value", "forward", "tensor_value"):
                with pytest.raises(RuntimeError, match="Stale Expression"):
                    getattr(stale, read)()
        with pytest.raises(RuntimeError, match="Stale"):
            dy.sum_elems(y).backward()

    def test_uses_are_refused(self):
        x = dy.inputVector([1, 2, 3])
        dy.renew_cg()
        fresh = dy.inputVector([1, 2, 3])
        with pytest.raises(RuntimeError, match="Stale"):
            dy.tanh(x).value()
        with pytest.raises(EdBatchError):
            x + fresh
        with pytest.raises(EdBatchError):
            dy.esum([fresh, x])


class TestReads:
    def test_matrices(self):
        array = np.arange(6.0).reshape(2, 3)
        x = dy.inputTensor(array)
        assert np.array_equal(x.value(), array)
        assert x.vec_value() == array.reshape(-1, order="F").tolist()
        assert x.npvalue().dtype == np.float64
        with pytest.raises(RuntimeError):
            x.scalar_value()
        assert isinstance(dy.scalarInput(2).value(), float)

    def test_mini_batches(self):
        array = np.arange(6.0).reshape(3, 2)
        x = dy.inputTensor(array, batched=True)
        assert x.dim() == ((3,), 2)
        assert np.array_equal(x.npvalue(), array)
        assert x.value() == x.vec_value() == array.T.reshape(-1).tolist()
        assert dy.sum_elems(x).value() == [6.0, 9.0]

    def test_tensors(self):
        array = np.array([[0.0, 5.0, 2.0], [3.0, 4.0, 1.0]])
        tensor = dy.inputTensor(array).tensor_value()
        assert np.array_equal(tensor.as_numpy(), array)
        assert tensor.argmax().as_numpy().tolist() == [[1, 0, 0]]
        assert tensor.argmax(dim=1, num=2).as_numpy().tolist() == [[1, 2], [1, 0]]

    def test_identity_and_truth_are_pythons(self):
        x, y = dy.scalarInput(0), dy.scalarInput(0)
        assert x
        assert x == x
        assert x != y
        assert y not in [x]


class TestSettable:
    def test_what_depends_on_it_is_computed_again(self, model):
        W = model.add_parameters((2, 3), init=1.0)
        x, y = dy.vecInput(3), dy.scalarInput(1)
        loss = dy.squared_norm(W * x) * y
        for numbers, factor in [([1, 2, 3], 2), ([0, 1, 0], 3), ([0, 1, 0], 4)]:
            x.set(numbers)
            y.set(factor)
            assert loss.value() == pytest.approx(2 * sum(numbers) ** 2 * factor)

    def test_gradients_are_of_the_new_values(self, model):
        W = model.add_parameters((1, 2), init=1.0)
        x = dy.vecInput(2)
        loss = dy.sum_elems(W * x)
        for numbers in ([1.0, 2.0], [3.0, 4.0]):
            x.set(numbers)
            loss.value()
            loss.backward()
            assert W.grad_as_array().tolist() == [numbers]
            model.reset_gradient()

    def test_the_graph_may_grow_between(self):
        x = dy.scalarInput(2)
        y = x * x
        assert y.value() == 4.0
        z = y + dy.inputVector([1, 2])
        assert z.value() == [5.0, 6.0]
        x.set(3)
        w = z * 2
        assert (w.value(), z.value(), y.value()) == ([20.0, 22.0], [10.0, 11.0], 9.0)

    def test_lists_look_ups_and_mini_batches_are_computed_again(self, model):
        table = model.lookup_parameters_from_numpy(np.arange(6.0).reshape(3, 2))
        x = dy.inputVector([1, 1])
        xs = table.batch([0, 2]) + x
        total = dy.esum([dy.sum_batches(xs), table[1], x])
        assert total.value() == [4.0 + 2 + 2 + 1, 6.0 + 2 + 3 + 1]
        x.set([2, 0])
        assert total.value() == [4.0 + 4 + 2 + 2, 6.0 + 0 + 3 + 0]
        assert xs.npvalue().T.tolist() == [[2.0, 1.0], [6.0, 5.0]]

    def test_parameters_on_demand(self, model):
        W = model.add_parameters(2, init=1.0)
        y = W * 3.0
        assert y.value() == [3.0, 3.0]
        W.set_value([2.0, 3.0])
        assert y.value() == [3.0, 3.0]
        assert y.value(recalculate=True) == [6.0, 9.0]

    def test_what_waits_takes_parameters_as_they_are_when_it_runs(self, model):
        W = model.add_parameters(2, init=1.0)
        y = W * 3.0
        W.set_value([2.0, 3.0])
        assert y.value() == [6.0, 9.0]

    def test_training_on_one_graph(self, model):
        W = model.add_parameters(2, init=1.0)
        trainer = dy.SimpleSGDTrainer(model, learning_rate=0.25)
        loss = dy.squared_norm(W)
        for _ in range(3):
            loss.backward()
            trainer.update()
        assert W.as_array().tolist() == [0.125, 0.125]


class TestBackward:
    def test_only_of_numbers(self):
        with pytest.raises(ValueError, match="scalar nodes"):
            dy.inputVector([1, 2]).backward()
        with pytest.raises(ValueError, match="scalar nodes"):
            dy.inputTensor(np.ones((1, 2)), batched=True).backward()

    def test_leads_to_nothing_without_a_word(self, model):
        W = model.add_parameters(2, init=1.0)
        dy.sum_elems(W.expr(False)).backward()
        assert not W.has_grad


def test_nan_is_an_error_where_it_is_made():
    dy.renew_cg(immediate_compute=True, check_validity=True)
    with pytest.raises(EdBatchError, match=r"NaN in a result of log"):
        dy.log(dy.inputVector([-1.0])).value()
    dy.renew_cg()
    assert np.isnan(dy.log(dy.inputVector([-1.0])).value())


def test_graphs_of_edbatch_go_on_beside(model):
    W = model.add_parameters((2, 2), init=1.0)
    y = W * dy.inputVector([1, 2])
    with eb.Graph():
        z = W.expr() @ eb.input([1.0, 2.0])
    assert y.value() == z.value().tolist() == [3.0, 3.0]


def test_graphs_are_printed(capsys):
    dy.tanh(dy.exp(dy.inputVector([1, 2])))
    dy.print_text_graphviz()
    text = 'digraph G {\n  N0 [label="exp([2])"];\n  N1 [label="tanh([2])"];\n  N0 -> N1;\n}\n'
    assert capsys.readouterr().out == text


def test_devices():
    assert dy.to_device(dy.scalarInput(1), "CPU").value() == 1.0
    with pytest.raises(RuntimeError, match="Invalid device"):
        dy.to_device(dy.scalarInput(1), "GPU:0")
