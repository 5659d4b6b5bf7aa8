"""Replayed functions in programs, threads, cells and vertex functions; parameters, and what is drawn."""

import itertools
import random
import threading

import numpy as np
import pytest

import edbatch as eb
from tests.graph.replay.models import Model, loss, same


def step(model, words, weight):
    ys = [eb.stop_gradient(eb.lookup(model.table, word)) * weight for word in words]
    return loss(model, words) + eb.sum(eb.dropout(eb.sum(ys), 0.5))


def test_programs():
    model = Model()

    def program(function):
        async def steps(words):
            y = function(model, words, eb.ones(3))
            if await y > 0:
                y = y + function(model, words[::-1], eb.ones(3))
            return y

        return steps

    replayed = eb.replay(step)
    for _ in range(2):
        values = []
        for function in (step, replayed):
            with eb.Graph(dtype="float64", seed=3):
                values.append(eb.forward(eb.run([program(function)(words) for words in [(1, 2), (3,), (4, 5, 6)]])))
        assert values[0] == values[1]


def test_threads():
    model, replayed, failed = Model(), eb.replay(loss), []
    numbers = np.random.default_rng(0).integers(0, 9, (30, 5))
    samples = list(map(tuple, numbers.tolist()))

    def values(function, order):
        with eb.Graph(dtype="float64"):
            ys = [function(model, samples[at]) for at in order]
        return eb.forward(ys)

    wanted = values(loss, range(30))

    def work(seed):
        order = np.random.default_rng(seed).permutation(30).tolist()
        failed.extend(seed for _ in range(3) if values(replayed, order) != [wanted[at] for at in order])

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_lines_are_those_of_the_function():
    def function(numbers):
        return eb.log(eb.scalar(-1.0) * numbers[0])

    replayed = eb.replay(function)
    line = f"{__file__}:{function.__code__.co_firstlineno + 1}"
    for _ in range(2):
        with eb.options(trace_lines=True), eb.Graph(check_nan=True):
            y = replayed((1,))
            with pytest.raises(eb.EdBatchError, match="NaN in a result of log") as caught:
                y.value()
        assert line in str(caught.value)


def test_vertex_functions():
    model = Model()

    @eb.vertex
    def leaf(v):
        v.scatter(eb.lookup(model.table, v.pull()))

    @eb.vertex
    def inner(v):
        h = eb.tanh(model.W @ (v.gather(0) + v.gather(1)))
        v.scatter(h)
        v.push(eb.sum(h))

    def function(tree):
        structure, words = eb.InputGraph.of_tuples([tree])
        return eb.sum(eb.vertex(leaf, inner)(structure, words).pushed)

    same(function, eb.replay(function), (((3, 7), 5),), ((1, 2),), times=3)


def gradients(function, model, *args):
    model.model.zero_grad()
    with eb.Graph(dtype="float64"):
        y = function(model, *args)
    y.backward()
    return [p.grad() for p in (model.W, model.table)]


def test_parameters_that_are_updated_or_replaced():
    model, replayed = Model(), eb.replay(loss)
    trainer = eb.SGD(model.model, lr=0.1)
    for _ in range(3):
        for wanted, found in zip(gradients(loss, model, (1, 2)), gradients(replayed, model, (1, 2)), strict=True):
            np.testing.assert_array_equal(found, wanted)
        trainer.update()
    model.W = model.model.add_parameters((3, 3), name="other")
    same(loss, replayed, (model, (1, 2)))


def test_masks_are_drawn_anew():
    class Net(Model):
        training = True

        def plain(self, words):
            x = eb.lookup(self.table, words[0])
            return eb.sum(eb.dropout(x, 0.5) if self.training else x)

        replayed = eb.replay(plain)

    net = Net()
    with eb.Graph(dtype="float64", seed=3):
        found = [net.replayed((1,)) for _ in range(20)]
    assert len({float(x.value()) for x in found}) > 1
    with eb.Graph(dtype="float64", seed=3):
        wanted = [net.plain((1,)) for _ in range(20)]
    assert eb.forward(found) == eb.forward(wanted)


def test_a_later_sample_may_be_the_first_that_draws():
    replayed = eb.replay(lambda x: eb.scalar(x if x < 5 else random.random()))
    with eb.Graph():
        for x in (1.0, 2.0, 3.0):
            assert replayed(x).value() == x
        for _ in range(2):
            with pytest.raises(eb.EdBatchError, match="called twice, it records two different things"):
                replayed(9.0)
        assert replayed(4.0).value() == 4


def test_another_parameter_each_time():
    model = eb.ParameterCollection(seed=0)
    drawn = itertools.cycle([model.add_parameters(2), model.add_parameters(2)])
    replayed = eb.replay(lambda x: eb.sum([eb.input(x), next(drawn)]))
    with eb.Graph(), pytest.raises(eb.EdBatchError, match="called twice, it records two different things"):
        replayed((1.0, 2.0))


def test_expressions_of_a_vertex():
    """Each vertex has its own."""

    @eb.replay
    def scaled(x, by):
        return eb.tanh(x) * by

    @eb.vertex
    def of_vertex(v):
        v.push(scaled(v.pull(), 2.0))

    X = np.arange(10.0).reshape(5, 2)
    for _ in range(3):
        with eb.Graph(policy="depth", dtype="float64"):
            found = of_vertex(eb.InputGraph.of_chains([1] * 5), X).pushed.value()
        np.testing.assert_allclose(found, 2 * np.tanh(X))
