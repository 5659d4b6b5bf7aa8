"""What a function makes of an array is what a loop makes of its entries, in as many batches."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph import ops
from edbatch.graph.cell.tree import flatten
from tests.graph.array_uses import SOURCES, USES, Model, assert_same, given


def total(results):
    """A number that depends on each entry of all results in another way."""
    terms = []
    for at, x in enumerate(results, 1):
        size = int(np.prod(x.shape))
        each = eb.reshape(x, size) if x.shape else eb.reshape(x, 1)
        terms.append(eb.dot(each, np.cos(np.arange(size) + at)))
    return terms


def by_array(use, model, X, Y, k, policy="sufficient", dtype="float64"):
    with eb.Graph(policy, dtype) as graph:
        x, y = eb.array(X), eb.array(Y)
        results = flatten(use(x, y, k, model))[0]
        loss = eb.sum([eb.sum(term) for term in total(results)])
        values = [result.value() for result in results]
    loss.backward()
    return values, [x.gradient(), y.gradient()], model.gradients(), graph.report()


def by_loop(use, model, X, Y, k, policy="sufficient", dtype="float64"):
    with eb.Graph(policy, dtype) as graph:
        xs, ys = [eb.input(row) for row in X], [eb.input(row) for row in Y]
        rows = [flatten(use(x, y, int(i), model))[0] for x, y, i in zip(xs, ys, k, strict=True)]
        columns = list(zip(*rows, strict=True))
        terms = [total(row) for row in rows]
        loss = eb.sum([eb.sum(list(column)) for column in zip(*terms, strict=True)])
        values = [np.array(eb.forward(column)) for column in columns]
    loss.backward()
    gradients = [np.array([x.gradient() for x in each]) for each in (xs, ys)]
    return values, gradients, model.gradients(), graph.report()


def test_every_function_is_among_the_uses():
    called = {name.partition(" ")[0].rstrip(",") for name in USES}
    assert set(ops.__all__) - SOURCES - called == set()


@pytest.mark.filterwarnings("ignore:backward")
@pytest.mark.parametrize(("n", "dtype"), [(7, "float64"), pytest.param(1000, "float32", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", USES)
def test_is_a_loop_over_single_ones(name, n, dtype):
    (X, Y), k = given(n)
    model = Model(dtype)
    assert_same(
        by_array(USES[name], model, X, Y, k, dtype=dtype), by_loop(USES[name], model, X, Y, k, dtype=dtype), dtype
    )


@pytest.mark.parametrize("name", USES)
def test_of_no_entries_is_of_none(name):
    (X, Y), k = given(1)
    model = Model()
    with eb.Graph(dtype="float64") as graph:
        x, y = eb.array(X), eb.array(Y)
        some = flatten(USES[name](x, y, k, model))[0]
        none = flatten(USES[name](x[:0], y[[]], k[:0], model))[0]
        for one, other in zip(some, none, strict=True):
            assert len(other) == 0
            assert other.spec is one.spec
            assert other.value().shape == (0, *one.shape)
        assert graph.n < 80
