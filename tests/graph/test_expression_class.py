"""A class of one's own for the expressions of a graph, as another interface to the same recording needs."""

import numpy as np
import pytest

import edbatch as eb


class Tensor(eb.Expression):
    """Has a method and an operator that expressions do not have, and ideas of its own of length and iteration."""

    __slots__ = ()

    def dim(self):
        return len(self.shape)

    def __mod__(self, other):
        return eb.maximum(self, other)

    def __len__(self):
        return self.shape[0]

    def __iter__(self):
        return (self[at] for at in range(len(self)))


MODEL = eb.ParameterCollection(seed=0)
W, TABLE = MODEL.add_parameters((2, 2)), MODEL.add_lookup_parameters((5, 2))


def class_in(graph):
    return {x.__class__ for x in graph}


def test_whatever_records_returns_it():
    with eb.Graph(expression_class=Tensor) as graph:
        for _ in range(3):  # slowly, and then as it was learned
            x, one = eb.input([1.0, 2.0]), eb.scalar(3.0)
            made = [x, one, eb.zeros(2), eb.ones(2), eb.parameter(W), eb.lookup(TABLE, 1), TABLE[2], x + one, 2.0 * x]
            made += [W @ x, eb.sum([x, x]), eb.sum(x), eb.concatenate([x, x]), x[0], x[:1], *eb.split(x, 2)]
            made += [eb.pick(x, 1), eb.pick(eb.ones((99, 99)), 3)]  # also of what is large
            made += [*eb.softmax([x, x]), *eb.dots(x, [x, x]), eb.attention(x, [x], [x]), eb.dropout(x, 0.5), x % 2.0]
            made += [eb.cross_entropy(x, 1), eb.stop_gradient(x), eb.gather(x, [1, 0], 0), *x, eb.reshape(x, (1, 2)).T]
            assert class_in(made) == {Tensor}
    assert (W @ x).value() == pytest.approx(W.value() @ [1, 2])
    eb.sum(W @ x + x % 1.5).backward()
    assert x.gradient() == pytest.approx(W.value().sum(0) + [0, 1])
    assert graph.expression_class is Tensor


def test_arrays_are_of_a_class_that_is_made_for_it():
    with eb.Graph(expression_class=Tensor):
        xs = eb.lookup(TABLE, np.array([0, 4, 2]))
        for _ in range(3):
            made = [xs, xs + 1.0, xs[1:], xs[:, 0], eb.array(list(xs)), xs % 0.0]
            assert class_in(made) == {Tensor.of_arrays}
            assert class_in([xs[0], *xs, eb.sum(xs)]) == {Tensor}
    assert len(xs) == 3  # and not the size of an axis
    assert xs.dim() == 1
    assert issubclass(Tensor.of_arrays, eb.ExpressionArray)
    assert issubclass(Tensor.of_arrays, Tensor)
    assert (Tensor.of_arrays.__name__, Tensor.of_arrays.__module__) == ("TensorArray", __name__)
    np.testing.assert_array_equal(xs.value(), TABLE.value()[[0, 4, 2]])


def test_a_class_may_bring_that_of_its_arrays():
    class Own(eb.Expression):
        __slots__ = ()

    class Several(Own, eb.ExpressionArray):
        __slots__ = ()

    class Heir(Own):
        __slots__ = ()

    Own.of_arrays = Several
    for kind in (Own, Heir):
        with eb.Graph(expression_class=kind):
            assert isinstance(eb.array(np.ones((2, 3))) + 1.0, Several)
    assert Heir.of_arrays is not Several
    Own.of_arrays = list
    with pytest.raises(eb.EdBatchError, match=r"Own\.of_arrays: expected a subclass of ExpressionArray"):
        eb.Graph(expression_class=Own)


@pytest.mark.parametrize("wrong", [int, None, "Tensor", eb.ExpressionArray, eb.Parameter])
def test_other_classes_are_refused(wrong):
    with pytest.raises(eb.EdBatchError, match="expression_class: expected a subclass of Expression"):
        eb.Graph(expression_class=wrong)


def by_class(x, at: int):
    """What computes something else of each class, with what only one of them has."""
    y = TABLE[at] + W @ x
    assert y.__class__ is x.__class__
    return (y.dim() * (y % 0.0), y) if isinstance(y, Tensor) else (y, y - 1.0)


class Layer:
    @eb.cell
    def call(self, x, at: int):
        return by_class(x, at)


@pytest.mark.parametrize("options", [{}, {"cells": False}, {"check": True}])
def test_cells_are_traced_for_each_class(options):
    layer, inner = Layer(), eb.cell(by_class)

    @eb.cell
    def outer(x, at: int):
        return inner(x, at)

    x = np.array([1.0, -2.0])
    plain = TABLE.value()[3] + W.value() @ x
    for kind in (Tensor, eb.Expression, Tensor, Tensor, eb.Expression):
        with eb.options(**options), eb.Graph(expression_class=kind):
            for call in (layer.call, inner, outer):
                for _ in range(3):
                    a, b = call(eb.input(x), 3)
                    assert class_in([a, b]) == {kind}
                wanted = (np.maximum(plain, 0), plain) if kind is Tensor else (plain, plain - 1)
                np.testing.assert_allclose([a.value(), b.value()], wanted, rtol=1e-6)
                many = call(eb.array(np.array([x, x])), np.array([3, 3]))
                assert class_in(many) == {kind.of_arrays}
                np.testing.assert_allclose([y.value()[1] for y in many], wanted, rtol=1e-6)


def test_a_trace_that_computes_the_same_is_compiled_once():
    call = eb.cell(lambda x: eb.tanh(x) * 2.0)
    types = []
    for kind in (Tensor, eb.Expression):
        with eb.Graph(expression_class=kind) as graph:
            types.append(graph.type_of(call(eb.ones(2))))
    assert types[0] is types[1]


def test_replayed_and_vertex_functions_and_programs():
    replayed = eb.replay(lambda at: by_class(eb.lookup(TABLE, at), at))
    every = eb.replay(lambda numbers: eb.lookup(TABLE, np.array(numbers)) * 2.0)
    seen = []  # sets of classes

    @eb.vertex
    def vertex(v):
        seen.append(class_in([v.pull(), *v.gather()]))
        v.scatter(by_class(v.pull() + sum(v.gather()), 3)[1])

    async def program(at):
        a, _ = by_class(eb.lookup(TABLE, at), at)
        return a if float(np.sum(await a)) < 1e9 else None

    chain = eb.InputGraph([0, 0, 1, 2], [0, 1])
    for kind in (eb.Expression, Tensor, Tensor, eb.Expression) * 3:  # often enough that it is kept what is recorded
        with eb.Graph(expression_class=kind):
            for _ in range(2):
                assert class_in([*replayed(1), *replayed(2)]) == {kind}
                assert class_in([every((1, 3))]) == {kind.of_arrays}
            assert class_in(eb.run([program(at) for at in range(3)])) == {kind}
            found = vertex(chain, eb.array(np.ones((3, 2)))).scattered
            assert class_in([found]) == {kind.of_arrays}
            assert {kind} == set().union({kind}, *seen)
            seen.clear()
            wanted = by_class(eb.lookup(TABLE, 1), 1), by_class(eb.ones(2), 3)
            np.testing.assert_array_equal(replayed(1)[1].value(), wanted[0][1].value())
            np.testing.assert_allclose(found[0].value(), wanted[1][1].value(), rtol=1e-6)
