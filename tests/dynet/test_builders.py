"""Builders: states, what is set in them, mini-batches, dropout; their numbers are compared in `test_programs`."""

import numpy as np
import pytest

import edbatch as eb
import edbatch.dynet as dy
from edbatch.dynet.implicit import implicit

BUILDERS = [
    dy.VanillaLSTMBuilder, dy.CoupledLSTMBuilder, dy.FastLSTMBuilder,
    dy.GRUBuilder, dy.SimpleRNNBuilder,
]  # fmt: skip


@pytest.fixture
def model():
    dy.reset_random_seed(2)
    return dy.ParameterCollection()


def inputs(n=3):
    return [dy.inputVector(np.cos(np.arange(3) + 3 * k)) for k in range(n)]


@pytest.mark.parametrize("make", BUILDERS)
class TestAll:
    def test_ways_of_going_on(self, model, make):
        builder, xs = make(2, 3, 4, model), inputs()
        state = builder.initial_state()
        assert (state.h(), state.s(), state.output(), state.prev()) == ((), (), None, None)
        states, outputs = state.add_inputs(xs), state.transduce(xs)
        for x, one, output in zip(xs, states, outputs, strict=True):
            following = state.add_input(x)
            assert following.prev() is state
            state = following
            assert state.output().value() == state.h()[-1].value()
            for other in (one.output(), output):
                np.testing.assert_allclose(other.value(), state.output().value(), rtol=1e-5, atol=1e-6)
        assert len(state.h()) == 2
        assert len(state.s()) == (2 if isinstance(builder, dy.GRUBuilder | dy.SimpleRNNBuilder) else 4)

    def test_states_are_set(self, model, make):
        builder, xs = make(2, 3, 4, model), inputs()
        state = builder.initial_state().add_inputs(xs)[-1]
        again = builder.initial_state(list(state.s()))
        last = state.add_input(xs[0]).output().value()
        for same in (again, builder.initial_state().set_s(list(state.s()))):
            np.testing.assert_allclose(same.add_input(xs[0]).output().value(), last, rtol=1e-5, atol=1e-6)
        other = state.set_h([dy.zeros(4), dy.ones(4)])
        assert [h.value() for h in other.h()] == [[0.0] * 4, [1.0] * 4]
        with pytest.raises(RuntimeError):
            state.set_h([dy.zeros(4)])

    def test_dropout(self, model, make):
        builder, xs = make(1, 3, 4, model), inputs()
        plain = builder.initial_state().transduce(xs)[-1].value()
        builder.set_dropout(0.5)
        seen = {tuple(builder.initial_state().transduce(xs)[-1].value()) for _ in range(20)}
        assert len(seen) > 5
        builder.disable_dropout()
        assert builder.initial_state().transduce(xs)[-1].value() == plain

    def test_parameters(self, model, make):
        builder = make(2, 3, 4, model)
        with pytest.raises(ValueError, match="initial_state"):
            builder.get_parameter_expressions()
        builder.initial_state()
        found = builder.get_parameters()
        assert len(found) == 2
        assert found[0][0] is builder.param_collection().parameters_list()[0]
        assert builder.get_parameter_expressions() == found


class TestBoth:
    def test_directions(self, model):
        builder, xs = dy.BiRNNBuilder(1, 3, 4, model, dy.GRUBuilder), inputs()
        ((forth, back),) = builder.builder_layers
        outputs = builder.transduce(xs)
        first = forth.initial_state().transduce(xs)
        second = back.initial_state().transduce(xs[::-1])[::-1]
        for output, f, b, (state_f, state_b) in zip(outputs, first, second, builder.add_inputs(xs), strict=True):
            assert output.value() == [*f.value(), *b.value()]
            assert state_f.output().value() == f.value()
            assert state_b.output().value() == b.value()

    def test_odd_sizes_are_refused(self, model):
        with pytest.raises(AssertionError, match="even"):
            dy.BiRNNBuilder(1, 3, 5, model, dy.LSTMBuilder)


def test_softmax(model, tmp_path):
    (tmp_path / "clusters").write_text("a w0\na w1\nb w2\nb w3\nb w4\nc w5\n")
    words = {f"w{k}": k for k in range(6)}
    factored = dy.ClassFactoredSoftmaxBuilder(3, str(tmp_path / "clusters"), words, model)
    for builder in (dy.StandardSoftmaxBuilder(3, 6, model), factored):
        losses = [builder.neg_log_softmax(inputs(1)[0], word) for word in range(6)]
        assert sum(np.exp(-loss.value()) for loss in losses) == pytest.approx(1)
        builder.neg_log_softmax(inputs(1)[0], 2, update=False).backward()
        assert not any(x.has_grad for x in builder.param_collection())
        losses[2].backward()
        assert any(x.has_grad for x in builder.param_collection())


def test_a_builder_inside_a_cell(model):
    builder = dy.LSTMBuilder(1, 3, 4, model)

    @eb.cell
    def step(c, h, x):
        (c,), (h,) = builder.step([c], [h], x)
        return c, h

    expected = builder.initial_state([dy.zeros(4), dy.ones(4)]).add_input(inputs(1)[0]).output().value()
    with eb.Graph():
        _, h = step(eb.zeros(4), eb.ones(4), eb.input(np.cos(np.arange(3))))
    np.testing.assert_allclose(h.value(), expected, rtol=1e-5)


class TestSteps:
    """What records a step as one node."""

    def test_inputs_that_are_set_reach_it(self, model):
        for make in (dy.LSTMBuilder, dy.GRUBuilder):
            dy.renew_cg()
            builder, xs = make(2, 3, 4, model), [dy.vecInput(3) for _ in range(4)]
            outputs = builder.initial_state().transduce(xs)
            values = []
            for round in (1, 2):
                for k, x in enumerate(xs):
                    x.set(np.cos(np.arange(3) * round + k))
                values.append(outputs[-1].value())
                dy.squared_norm(outputs[-1]).backward()
            gradient = builder.get_parameters()[0][0].grad_as_array()
            model.reset_gradient()
            dy.renew_cg()
            alone = builder.initial_state().transduce([dy.inputVector(np.cos(np.arange(3) * 2 + k)) for k in range(4)])
            np.testing.assert_allclose(values[1], alone[-1].value(), rtol=1e-5)
            assert values[0] != values[1]
            dy.squared_norm(alone[-1]).backward()
            dy.renew_cg()
            alone = builder.initial_state().transduce([dy.inputVector(np.cos(np.arange(3) + k)) for k in range(4)])
            dy.squared_norm(alone[-1]).backward()
            expected = builder.get_parameters()[0][0].grad_as_array()
            np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-6)
            model.reset_gradient()

    def test_a_step_is_one_node(self, model):
        builder = dy.LSTMBuilder(1, 3, 4, model)
        state = builder.initial_state().add_input(inputs(1)[0])
        before = implicit.graph.n
        state.add_input(state.output()[0:3])
        assert implicit.graph.n == before + 1

    def test_gradients_of_states_are_those_of_single_ops(self, model):
        gradients = []
        for update in (True, False):
            builder = dy.LSTMBuilder(1, 3, 4, model)
            for own, other in zip(builder.get_parameters()[0], model.parameters_list()[:3], strict=True):
                own.set_value(other.as_array())
            dy.renew_cg()
            states = builder.initial_state(update=update).add_inputs(inputs())
            loss = dy.esum([dy.squared_norm(x) for state in states for x in state.s()])
            loss.backward()
            gradients.append([x.gradient() for state in states for x in state.s()])
        np.testing.assert_allclose(*gradients, rtol=1e-5, atol=1e-7)

    @pytest.mark.parametrize("make", BUILDERS)
    def test_columns_matrices_and_parameters(self, model, make):
        builder = make(1, 3, 4, model)
        arrays = np.sin(np.arange(12.0)).reshape(2, 3, 2)
        for columns in (1, 2):
            xs = [dy.inputTensor(array[:, :columns]) for array in arrays]
            found = builder.initial_state().transduce(xs)[-1].npvalue()
            for column in range(columns):
                alone = builder.initial_state().transduce([dy.inputVector(array[:, column]) for array in arrays])
                np.testing.assert_allclose(found[:, column], alone[-1].npvalue(), rtol=1e-5, atol=1e-6)
        parameter = model.add_parameters(3, init=arrays[0, :, 0])
        found = builder.initial_state().add_input(parameter).output()
        expected = builder.initial_state().add_input(dy.inputVector(arrays[0, :, 0])).output().value()
        np.testing.assert_allclose(found.value(), expected, rtol=1e-5)
        dy.squared_norm(found).backward()
        assert np.abs(parameter.grad_as_array()).min() > 0
