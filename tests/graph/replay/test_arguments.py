"""Models, samples and expressions as arguments of replayed functions."""

import copy
import gc
import weakref
from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest

import edbatch as eb
from tests.graph.replay.models import Model, loss, same, total, value

State = namedtuple("State", ["h", "c"])


@dataclass
class Tree:
    label: int
    children: list


def test_a_model_may_come_first():
    one, other = Model(), Model(seed=1)
    same(loss, eb.replay(loss), (one, (1, 2)), (other, (1, 2)), (one, [3, 4]), (other, [3, 4]))


def test_models_are_not_kept():
    replayed, model = eb.replay(loss), Model()
    value(replayed, model, (1, 2))
    there = weakref.ref(model)
    del model
    gc.collect()
    assert there() is None


def step(model, words, state):
    h, c = state
    for word in words:
        h = eb.tanh(model.W @ h + eb.lookup(model.table, word))
        c = c + h
    return type(state)((h, c)) if type(state) is not State else State(h, c)


@pytest.mark.parametrize("kind", [tuple, list, State._make])
def test_states_are_given_and_returned(kind):
    model, replayed = Model(), eb.replay(step)
    for _ in range(3):
        found = []
        for function in (step, replayed):
            with eb.Graph(dtype="float64"):
                state = kind([eb.zeros(3), eb.ones(3)])
                for words in ((1, 2), (3,), (1, 2)):
                    state = function(model, words, state)
            found.append([x.value() for x in state])
        np.testing.assert_array_equal(*found)


def test_expressions_in_any_place_are_operands():
    @dataclass
    class Beam:
        states: list
        scale: float

    def function(beam, extra):
        return {
            "sum": eb.sum([beam.states[0]["h"], beam.states[1]["h"] * beam.scale]),
            "rest": (extra[0], extra[1] * 2),
        }

    replayed = eb.replay(function)
    for at, scale in ((1.0, 2.0), (3.0, 2.0), (3.0, 5.0), (1.0, 5.0)):
        with eb.Graph():
            beam = Beam([{"h": eb.scalar(at)}, {"h": eb.scalar(10.0)}], scale)
            found = replayed(beam, (7, eb.scalar(at)))  # where an expression does not come first, too
        assert (found["sum"].value(), found["rest"][0], found["rest"][1].value()) == (at + 10 * scale, 7, 2 * at)


def test_expressions_that_nobody_can_give_anew_are_refused():
    class Holder:
        def __init__(self, x):
            self.x = x

    with eb.Graph():
        x = eb.scalar(1.0)
        with pytest.raises(eb.EdBatchError, match="got an object that holds an expression"):
            eb.replay(lambda holder: holder.x)(Holder(x))
        with pytest.raises(eb.EdBatchError, match="was there before"):
            eb.replay(lambda number: x)(1)


def test_views_and_arrays_of_expressions():
    model = Model()

    def function(ids, xs, y):
        return eb.sum(eb.sum(eb.lookup(model.table, ids) * xs[: len(ids)])) + eb.sum(y)

    replayed = eb.replay(function)
    for ids in ([1, 2], [1, 2], [3, 4, 5], [1, 2]):
        for n in (5, 6):
            found = []
            for one in (function, replayed):
                with eb.Graph(dtype="float64"):
                    whole = eb.input(np.arange(12.0).reshape(3, 4))
                    found.append(one(np.array(ids), eb.lookup(model.table, np.arange(n)), whole[1:, ::-1].T).value())
            assert found[0] == found[1]


def test_arguments_may_be_returned():
    replayed = eb.replay(lambda number, x: (x, x[1:], number))
    for _ in range(2):
        with eb.Graph():
            x = eb.input([1.0, 2.0, 3.0])
            whole, part, number = replayed(5, x[1:])
        assert (whole.value().tolist(), part.value().tolist(), number) == ([2, 3], [3], 5)


def function_of_tree(tree):
    return eb.sum([eb.scalar(float(tree.label)), *[function_of_tree(child) for child in tree.children]])


def test_samples_of_classes_that_are_changed():
    replayed = eb.replay(function_of_tree)
    tree = Tree(1, [Tree(2, []), Tree(3, [Tree(4, [])])])
    same(function_of_tree, replayed, (tree,))
    tree.children[1].children[0].label = 10
    same(function_of_tree, replayed, (tree,))
    tree.children.append(Tree(100, []))
    same(function_of_tree, replayed, (tree,))
    del tree.children[0]
    same(function_of_tree, replayed, (tree,))


@pytest.mark.parametrize("sample", [[1, 2], {1: 3, 2: 4}, {5, 6}, np.arange(3), (np.float32(1), True), ((), [])])
def test_samples_of_any_kind(sample):
    def function(given):
        return eb.scalar(float(len(given))) + sum(float(x) for x in given if not isinstance(x, tuple | list))

    same(function, eb.replay(function), (sample,), (copy.copy(sample),))


def test_samples_that_are_gone_are_no_others():
    replayed = eb.replay(total)
    for at in range(300):
        assert value(replayed, [at, at + 1]) == 2 * at + 1
        if at % 100 == 0:
            gc.collect()


def test_keys_tell_samples_apart():
    class Sample:
        def __init__(self, number, values):
            self.number, self.values = number, values

    def function(model, sample):
        return loss(model, sample.values)

    replayed, model = eb.replay(function, key=lambda sample: sample.number), Model()
    first, again, other = (value(replayed, model, Sample(*x)) for x in ((1, (1, 2)), (1, (3,)), (2, (3,))))
    assert first == again == value(loss, model, (1, 2))
    assert other == value(loss, model, (3,))
