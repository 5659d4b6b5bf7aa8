"""Going back to a mark: what was recorded since, and has not run, is forgotten; nothing else changes."""

import numpy as np

import edbatch as eb
from edbatch.graph.expression import Expression
from edbatch.graph.marks import mark, take_back


class Since(Expression, gc=False, eq=False):
    """Expressions that were made since."""


def test_classes_and_what_is_forgotten():
    table = eb.ParameterCollection().add_lookup_parameters((4, 2), init=np.arange(8.0).reshape(4, 2))
    with eb.Graph() as graph:
        x = eb.input([1.0, 2.0])
        rows = eb.lookup(table, np.array([1, 2])) + 1.0
        to = mark(graph, Since)
        assert type(x + 5.0) is Since
        eb.sum(eb.lookup(table, np.arange(100) % 4))
        eb.array([x, eb.zeros(2), rows[0]]) * 3.0
        rows * 7.0
        take_back(graph, to)
        assert (graph.n, len(graph.inputs), graph.handle) == (to.n, to.inputs, Expression)
        y, total = x * 7.0 + 5.0, eb.sum(rows * 3.0)
    assert y.value().tolist() == [12.0, 19.0]
    assert total.value().tolist() == [24.0, 30.0]


def test_what_has_run_stays():
    with eb.Graph() as graph:
        x = eb.input([1.0, 2.0])
        to = mark(graph, Since)
        assert (x * 2.0).value().tolist() == [2.0, 4.0]
        ran = graph.n
        eb.tanh(x + eb.input([4.0, 5.0]))
        take_back(graph, to)
        assert graph.n == ran
        y = x * 2.0 + eb.input([1.0, 1.0])
    assert y.value().tolist() == [3.0, 5.0]


def test_lines_are_those_of_what_is_left():
    with eb.options(trace_lines=True), eb.Graph() as graph:
        x = eb.input([1.0, 2.0])
        to = mark(graph, Since)
        eb.tanh(x)
        take_back(graph, to)
        y = eb.exp(x)
        assert y.value().shape == (2,)
        assert graph.report().batches == 1
