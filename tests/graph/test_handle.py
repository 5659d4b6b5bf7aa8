"""The class of a graph's expressions is the graph's to say: what records, views, chooses and joins makes that class."""

from collections.abc import Iterator

import numpy as np
import pytest

import edbatch as eb


class Marked(eb.Expression, gc=False, eq=False):
    """An expression of another class."""


class MarkedArray(Marked, eb.ExpressionArray, gc=False, eq=False):
    """An array of such."""


Marked.of_arrays = MarkedArray


@pytest.fixture
def model() -> eb.ParameterCollection:
    return eb.ParameterCollection(seed=1)


@pytest.fixture(autouse=True)
def graph() -> Iterator[eb.Graph]:
    with eb.Graph() as graph:
        graph.handle = Marked
        yield graph


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x,
        lambda x: x + 1,
        lambda x: 1 - x * x,
        lambda x: x[1:],
        lambda x: x[0],
        lambda x: eb.reshape(x, (1, 3)),
        lambda x: eb.sum([x, x]),
        lambda x: eb.concatenate([x, x]),
        lambda x: eb.stack([x, x]),
        lambda x: eb.layer_norm(x, eb.ones(3), eb.zeros(3)),
        lambda x: eb.cross_entropy(x, 1),
        lambda x: eb.hinge(x, 1),
        lambda x: eb.softmax(x),
        lambda x: eb.dropout(x, 0.5),
        lambda x: eb.gather(x, [0, 2], 0),
        lambda x: eb.zeros(3),
        lambda x: eb.zeros(3) + eb.zeros(3),
        lambda x: eb.attention(x, [x, x], [x, x]),
    ],
)
def test_one(make, graph):
    with_arrays = make(eb.array([eb.input([1.0, 2.0, 3.0])] * 2))
    found = make(eb.input([1.0, 2.0, 3.0]))
    assert type(found) is Marked
    assert type(with_arrays) in (Marked, MarkedArray)
    assert np.isfinite(found.value()).all()


def test_arrays(model):
    table = model.add_lookup_parameters((4, 3), init=[[0.0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]])
    xs = eb.lookup(table, np.array([3, 0, 2]))
    assert {type(x) for x in (xs, xs * 2, xs[:2])} == {MarkedArray}
    assert {type(x) for x in (xs[1], *xs)} == {Marked}
    total = eb.sum(xs)
    assert type(total) is Marked
    assert total.value().tolist() == [15.0, 18.0, 21.0]
    assert [x.tolist() for x in eb.forward([xs[:1], total])] == [[[9.0, 10.0, 11.0]], [15.0, 18.0, 21.0]]


def test_cells(model):
    W = model.add_parameters((2, 3), init=1.0)

    @eb.cell
    def step(x):
        return eb.tanh(W @ x)

    x = eb.input([1.0, 2.0, 3.0])
    y, ys = step(x), step(eb.array([x, x]))
    assert (type(y), type(ys)) == (Marked, MarkedArray)
    assert np.array_equal(ys.value(), np.stack([y.value()] * 2))
    y.sum().backward()
    assert W.has_grad
