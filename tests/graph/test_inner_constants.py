"""What functions compute with besides their operands is nobody's: what users hold has a gradient of its own uses."""

import numpy as np
import pytest

import edbatch as eb
from tests.arrays import on_host
from tests.graph.array_uses import USES, Model

SHAPES = [(), (1,), (2,), (3,), (4,), (8,), (1, 1), (2, 2), (2, 4), (4, 2), (8, 8), (2, 2, 2), (2, 3, 2, 2)]
NUMBERS = [-1.0, -0.5, 0.0, 0.1, 0.2, 0.5, 0.7, 0.9, 1.0, 2.0, 3.0, 8.0, 0.125]
MORE = {
    "one_hot of an integer": lambda x, y, k, p: eb.dot(x * 5, eb.one_hot(3, 8)),
    "one_hot of integers": lambda x, y, k, p: eb.one_hot([3, 1], 8) @ x,
    "sum of no expressions": lambda x, y, k, p: eb.sum([], like=x) * x,
    "stacks that broadcast": lambda x, y, k, p: (
        eb.reshape(x, (2, 1, 2, 2)) @ eb.reshape(eb.concatenate([y, y[:4]]), (1, 3, 2, 2))
    ),
    "numbers in lists": lambda x, y, k, p: eb.sum([x[0], 2.0, 0.5]) * eb.weighted_sum([0.5, 2.0], [x, y]),
    "cumsum": lambda x, y, k, p: eb.cumsum(x, 0) * 2.0,
    "parameters": lambda x, y, k, p: eb.tanh(p.W) @ x + p.W[0] + eb.stack([p.b, x])[0] + p.W.T @ y,
}  # fmt: skip
EVERY = {**USES, **MORE}


def held(model):
    """All that could be an op's constant too."""
    found = [call(shape) for shape in SHAPES for call in (eb.zeros, eb.ones)]
    numbers = [eb.reshape(number, (1,)) for number in NUMBERS]
    numbers += [*eb.array(NUMBERS), *eb.ExpressionList([*NUMBERS, eb.scalar(1.0)])[:-1], eb.stop_gradient(2.0)]
    return [*found, *numbers, eb.parameter(model.W), eb.parameter(model.b)]


def of_all(results):
    nested = results if isinstance(results, tuple | list) else [results]
    return eb.sum([eb.sum(x, tuple(range(x.ndim))) if x.ndim else x for x in nested])


@pytest.mark.parametrize("name", sorted({*EVERY} - {"parameter"}))  # which is one that is held
def test_no_gradient_of_a_function_reaches_what_others_hold(name):
    model = Model("float64")
    X = np.random.default_rng(0).uniform(0.05, 0.95, (2, 8))
    with eb.Graph(dtype="float64"):
        found = held(model)
        x, y = eb.input(X[0]), eb.input(X[1])
        loss = of_all(EVERY[name](x, y, 3, model)) + 0.5 * eb.sum(model.W @ x)
        found += held(model)
    loss.backward()
    for x in found:
        assert not np.any(on_host(x.gradient())), x


@pytest.mark.parametrize("times", [1, 3])
def test_of_replayed_functions(times):
    @eb.replay
    def replayed(sample):
        x, o, n = eb.input(sample), eb.ones(()), eb.reshape(3.0, 1)
        return eb.dot(x * 3.0, eb.one_hot(0, 3)) + eb.sum(n) * 2.0, o, n

    for _ in range(times):
        with eb.Graph():
            loss, one, number = replayed((1.0, 2.0, 3.0))
            outside = eb.ones(())
            (loss * 2.0).backward()
            assert one.gradient() == outside.gradient() == 0
            assert number.gradient() == 4


def test_of_vertex_functions():
    @eb.vertex
    def vertex(v):
        v.gather()
        v.scatter(3.0)
        v.push(eb.dot(v.pull() * 3.0, eb.one_hot(0, 3)), eb.ones(()))

    with eb.Graph():
        out = vertex(eb.InputGraph.of_chains([1, 1]), np.ones((2, 3)))
        losses, ones = out.pushed
        eb.sum(losses).backward()
        assert not ones.gradient().any()
        assert not out.scattered.gradient().any()


def test_sums_of_nothing_are_each_their_own():
    with eb.Graph():
        x, zeros = eb.input([1.0, 2.0]), eb.zeros(2)
        a, b = eb.sum([], like=x), eb.sum([], like=x)
        (eb.sum(a * x) + eb.sum(zeros * 3)).backward()
        assert a.gradient().tolist() == [1, 2]
        assert b.gradient().tolist() == [0, 0]
        assert zeros.gradient().tolist() == [3, 3]
