"""Replayed functions under all options and policies, in programs, threads, cells, and where something fails."""

import threading
import traceback

import numpy as np
import pytest

import edbatch as eb
from tests.graph.replay.models import Model, loss, same

OPTIONS = [*({name: False} for name in ("cells", "split", "record", "training")), {"compile": "plain"}]


def step(model, words, weight):
    ys = [eb.stop_gradient(eb.lookup(model.table, word)) * weight for word in words]
    return loss(model, words) + eb.sum(eb.dropout(eb.sum(ys), 0.5))


def found(function, model, samples, policy=None):
    model.model.zero_grad()
    with eb.Graph(policy, "float64", seed=3) as graph:
        weight = eb.input([1.0, 2.0, 3.0])
        losses = [function(model, words, weight) for words in samples]
        whole = eb.sum(losses)
    whole.backward()
    gradients = [model.W.grad(), model.table.grad(), weight.gradient()]
    return eb.forward(losses), gradients, graph.report().batches


def as_without(policy):
    model, replayed = Model(), eb.replay(step)
    samples = [(1, 2, 3), (4,), (1, 2, 3), (5, 5)]
    for _ in range(3):
        (values, gradients, batches), (right, right_gradients, right_batches) = (
            found(one, model, samples, policy) for one in (replayed, step)
        )
        assert (values, batches) == (right, right_batches)
        for gradient, wanted in zip(gradients, right_gradients, strict=True):
            np.testing.assert_allclose(gradient, wanted, rtol=1e-12)


@pytest.mark.parametrize("policy", [None, "none", "depth", "agenda", "sufficient"])
def test_policies(policy):
    as_without(policy)


@pytest.mark.parametrize("options", [*OPTIONS, {"trace_lines": True}, {"profile": True}], ids=str)
def test_options(options):
    with eb.options(**options):
        as_without("sufficient")


def test_options_change_between_graphs():
    model, replayed = Model(), eb.replay(loss)
    for options in [*OPTIONS, {"trace_lines": True}, {}]:
        with eb.options(**options):
            same(loss, replayed, (model, (1, 2)))


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
    random = np.random.default_rng(0)
    samples = [tuple(random.integers(0, 9, 5).tolist()) for _ in range(30)]

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


def test_cells_may_call_replayed_functions():
    model = Model()
    inner = eb.replay(lambda x: eb.tanh(model.W @ x))

    @eb.cell
    def outer(x):
        return inner(x) + x

    for _ in range(2):
        with eb.Graph(dtype="float64"):
            y = outer(eb.ones(3)).value()
        np.testing.assert_allclose(y, np.tanh(model.W.value() @ np.ones(3)) + 1, rtol=1e-12)


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


def test_errors_come_from_the_users_line():
    def function(x, numbers):
        return x + eb.input(np.ones(len(numbers)))

    replayed = eb.replay(function)
    for _ in range(2):
        with eb.Graph() as graph:
            x = eb.ones(3)
            with pytest.raises(eb.EdBatchError) as plain:
                function(x, [1, 2])
            with pytest.raises(eb.EdBatchError) as caught:
                replayed(x, [1, 2])
            assert str(caught.value) == str(plain.value)
            lines = [frame.lineno for frame in traceback.extract_tb(caught.tb) if frame.filename == __file__]
            assert lines[-1] == function.__code__.co_firstlineno + 1
            assert replayed(x, [1, 2, 3]).value().tolist() == [2, 2, 2]
            assert graph.report().nodes > 0


def test_no_graph():
    with pytest.raises(eb.EdBatchError, match="no graph"):
        eb.replay(lambda number: eb.scalar(number))(1.0)


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
