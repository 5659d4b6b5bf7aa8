"""The implicit graph: renewed, read in every way, computed anew when inputs or parameters have changed."""

import numpy as np
import pytest

import edbatch as eb
import edbatch.dynet as dy
from edbatch.dynet.implicit import implicit
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
            dy.tanh(x)
        with pytest.raises(EdBatchError):
            x + fresh
        with pytest.raises(EdBatchError):
            dy.esum([fresh, x])

    def test_setting_is_refused(self):
        x = dy.scalarInput(1)
        dy.renew_cg()
        with pytest.raises(RuntimeError, match="Stale"):
            x.set(2)

    def test_version_counts(self):
        before = dy.cg_version()
        dy.renew_cg(immediate_compute=True, check_validity=True)
        assert dy.cg_version() == dy.cg().version() == before + 1
        dy.cg().renew()
        assert dy.cg_version() == before + 2


class TestReads:
    def test_numbers(self):
        x = dy.scalarInput(2)
        assert (x.value(), x.scalar_value(), x.vec_value(), x.npvalue().tolist()) == (2.0, 2.0, [2.0], [2.0])
        assert isinstance(x.value(), float)

    def test_vectors(self):
        x = dy.inputVector([1, 2, 3])
        assert x.value() == x.vec_value() == x.npvalue().tolist() == [1.0, 2.0, 3.0]
        with pytest.raises(RuntimeError):
            x.scalar_value()

    def test_matrices(self):
        array = np.arange(6.0).reshape(2, 3)
        x = dy.inputTensor(array)
        assert np.array_equal(x.value(), array)
        assert x.vec_value() == array.reshape(-1, order="F").tolist()
        assert x.npvalue().dtype == np.float64

    def test_mini_batches(self):
        array = np.arange(6.0).reshape(3, 2)
        x = dy.inputTensor(array, batched=True)
        assert x.dim() == ((3,), 2)
        assert np.array_equal(x.npvalue(), array)
        assert x.value() == x.vec_value() == array.T.reshape(-1).tolist()
        assert dy.sum_elems(x).value() == [6.0, 9.0]

    def test_several(self):
        x, y = dy.scalarInput(1), dy.inputVector([1, 2])
        assert dy.values([x, y]) == [1.0, [1.0, 2.0]]
        assert [a.tolist() for a in dy.npvalues([x, y])] == [[1.0], [1.0, 2.0]]
        dy.forward([x, y], recalculate=True)

    def test_tensors(self):
        array = np.array([[0.0, 5.0, 2.0], [3.0, 4.0, 1.0]])
        tensor = dy.inputTensor(array).tensor_value()
        assert np.array_equal(tensor.as_numpy(), array)
        assert tensor.argmax().as_numpy().tolist() == [[1, 0, 0]]
        assert tensor.argmax(dim=1).as_numpy().tolist() == [[1], [1]]
        values, numbers = tensor.topk(dim=1, num=2)
        assert (values.as_numpy().tolist(), numbers.as_numpy().tolist()) == ([[5, 2], [4, 3]], [[1, 2], [1, 0]])

    def test_samples_follow_the_probabilities(self):
        dy.reset_random_seed(0)
        tensor = dy.log(dy.inputVector([0.7, 0.3])).tensor_value()
        drawn = [tensor.categorical_sample_log_prob().as_numpy()[0] for _ in range(1000)]
        assert 0.25 < np.mean(drawn) < 0.35

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

    def test_before_anything_ran(self):
        x = dy.scalarInput(1)
        x.set(5)
        assert (x + 1).value() == 6.0

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

    def test_gradients_of_inputs(self):
        x = dy.inputTensor([[1.0, 2.0], [3.0, 4.0]])
        dy.squared_norm(x).backward(full=True)
        assert x.gradient().tolist() == [[2.0, 4.0], [6.0, 8.0]]

    def test_gradients_of_mini_batches(self):
        xs = dy.inputTensor(np.arange(6.0).reshape(3, 2), batched=True)
        dy.sum_batches(dy.squared_norm(xs)).backward(full=True)
        assert np.array_equal(xs.gradient(), 2 * np.arange(6.0).reshape(3, 2))

    def test_gradients_add_up(self, model):
        W = model.add_parameters(2, init=1.0)
        for _ in range(2):
            dy.renew_cg()
            dy.sum_elems(W).backward()
        assert W.grad_as_array().tolist() == [2.0, 2.0]

    def test_leads_to_nothing_without_a_word(self, model):
        W = model.add_parameters(2, init=1.0)
        dy.sum_elems(dy.const_parameter(W)).backward()
        assert not W.has_grad


class TestCheckpoints:
    def test_what_was_made_since_is_stale(self, model):
        W = model.add_parameters((2, 2), init=1.0)
        table = model.lookup_parameters_from_numpy(np.ones((3, 2)))
        for reads in (False, True):
            dy.renew_cg()
            x, xs = dy.inputVector([1, 2]), table.batch([0, 1])
            dy.cg_checkpoint()
            y, ys, z = W * x + 1, xs * 2, dy.scalarInput(3)
            if reads:
                assert y.value() == [4.0, 4.0]
            dy.cg_revert()
            uses = [
                y.value, lambda y=y: y + 1, lambda x=x, y=y: x + y, lambda y=y: dy.tanh(y), lambda y=y: y[0],
                lambda x=x, y=y: dy.esum([x, y]), lambda y=y: dy.concatenate([y, y]), y.dim, y.gradient,
                ys.npvalue, lambda ys=ys, xs=xs: xs + ys, lambda ys=ys: dy.sum_batches(ys),
                z.value, lambda z=z: z.set(1), lambda z=z: z * 2,
            ]  # fmt: skip
            for use in uses:
                with pytest.raises(RuntimeError, match="Stale"):
                    use()
            assert (x * 2.0).value() == [2.0, 4.0]
            assert (xs + 3).npvalue().tolist() == [[4.0, 4.0], [4.0, 4.0]]
            assert (W * x + 1).value() == [4.0, 4.0]

    def test_what_has_not_run_is_forgotten(self):
        x, y = dy.inputVector([1, 2]), dy.scalarInput(2)
        before = implicit.graph.n
        for _ in range(3):
            dy.cg_checkpoint()
            dy.esum([dy.tanh(x * float(k)) for k in range(10)])
            dy.sum_batches(dy.inputTensor(np.ones((2, 3)), batched=True) * 7.0)
            dy.cg_revert()
            assert implicit.graph.n == before
            assert len(implicit.graph.inputs) == 2
        y.set(5)
        assert (x * y + 9.0).value() == [14.0, 19.0]
        assert implicit.graph.report().batches <= 3

    def test_they_nest(self, model):
        W = model.add_parameters(1, init=2.0)
        y = W * 3
        dy.cg_checkpoint()
        a = y * 3
        dy.cg_checkpoint()
        b = a * a
        b.backward()
        assert W.grad_as_array().tolist() == [324.0]
        dy.cg_revert()
        assert a.value() == 18.0
        with pytest.raises(RuntimeError, match="Stale"):
            b.value()
        dy.cg_revert()
        with pytest.raises(RuntimeError, match="Stale"):
            a.value()
        y.backward()
        assert W.grad_as_array().tolist() == [327.0]
        assert y.value() == 6.0

    def test_inputs_are_set_after_it(self):
        x = dy.vecInput(2)
        x.set([1, 2])
        dy.cg_checkpoint()
        y = x + dy.inputVector([5, 5])
        assert y.value() == [6.0, 7.0]
        dy.cg_revert()
        z = x + dy.inputVector([7, 7])
        assert z.value() == [8.0, 9.0]
        x.set([0, 0])
        assert z.value() == [7.0, 7.0]

    def test_without_a_checkpoint(self):
        with pytest.raises(RuntimeError, match="checkpoint"):
            dy.cg_revert()
        dy.cg_checkpoint()
        dy.renew_cg()
        with pytest.raises(RuntimeError, match="checkpoint"):
            dy.cg().revert()
        assert type(dy.scalarInput(1) + 1) is dy.Expression


def test_graphs_of_edbatch_go_on_beside(model):
    W = model.add_parameters((2, 2), init=1.0)
    y = W * dy.inputVector([1, 2])
    with eb.Graph():
        z = W.expr() @ eb.input([1.0, 2.0])
    assert y.value() == z.value().tolist() == [3.0, 3.0]


def test_graphs_are_printed(capsys):
    dy.tanh(dy.scalarInput(1)).value()
    dy.print_text_graphviz()
    assert "digraph" in capsys.readouterr().out


def test_devices():
    assert dy.to_device(dy.scalarInput(1), "CPU").value() == 1.0
    with pytest.raises(RuntimeError, match="Invalid device"):
        dy.to_device(dy.scalarInput(1), "GPU:0")
