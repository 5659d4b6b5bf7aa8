"""Nodes that are recorded together, among those that are recorded one by one."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.node_type import node_type
from edbatch.graph.op import OPS


def several(graph, xs, name="exp"):
    """Nodes of an op of one operand, recorded by one call."""
    type = node_type(OPS[name], (), (xs[0].spec,))
    first = graph.extend(type, len(xs), np.array([x.id for x in xs]))
    return [eb.Expression(graph, first + at, type.out) for at in range(len(xs))]


@pytest.mark.parametrize("n", [1, 7, 200])
@pytest.mark.parametrize("lines", [False, True])
def test_several_nodes_are_those_of_as_many_calls(n, lines):
    with eb.options(trace_lines=lines), eb.Graph("sufficient", "float64") as graph:
        xs = [eb.scalar(0.001 * at) for at in range(n)]
        ys = several(graph, xs)
        z = ys[0] + ys[-1]
        zs = several(graph, [x[None] for x in ys], "square")
        assert graph.waiting == graph.n == 3 * n + 1
        assert [repr(graph.type_of(x)) for x in (ys[-1], z, zs[0])] == ["exp([])", "add([], [])", "square([1])"]
        exponentials = np.exp(0.001 * np.arange(n))
        np.testing.assert_allclose(eb.forward(zs), exponentials[:, None] ** 2, rtol=1e-14)
        assert graph.waiting == 0
        assert float(z) == pytest.approx(exponentials[0] + exponentials[-1], rel=1e-14)
        last = several(graph, zs)
        np.testing.assert_allclose(eb.forward(last), np.exp(exponentials[:, None] ** 2), rtol=1e-14)
    assert graph.report().nodes == 3 * n + 1


def test_the_line_is_that_of_the_call():
    with eb.options(trace_lines=True), eb.Graph(check_nan=True) as graph:
        xs = [eb.scalar(-1.0)] * 100
        ys = several(graph, xs, "log")
        with pytest.raises(eb.EdBatchError, match=r"test_columns\.py:14"):
            ys[3].value()


def test_values_of_one_spec_are_rows_of_an_array():
    with eb.Graph() as graph:
        x = eb.input([[1.0, 2.0], [3.0, 4.0]])
        y = x[0] * 2
        ids = np.array([one.id for one in (y, x[1], y, x[0][::-1])])
        np.testing.assert_array_equal(graph.rows(ids, y.spec), [[2, 4], [3, 4], [2, 4], [2, 1]])
        assert graph.rows(ids[:0], y.spec).shape == (0, 2)
