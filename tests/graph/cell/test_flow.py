"""What gradients reach in a body, from a set of its outputs."""

from time import thread_time

import numpy as np

import edbatch as eb
from edbatch.graph.cell.flow import closed, reached
from edbatch.graph.options import Options
from edbatch.runtime.compile.cell import compile_cell
from tests.graph.bodies import trace


def flows(body, outputs):
    """Into which arguments."""
    return [parts.any() for parts in reached(body, outputs)[: len(body.arguments)]]


def test_outputs_that_are_reached_from_others_belong_to_the_set():
    def lstm(x, c):
        c = eb.sigmoid(x) * c
        return eb.tanh(c) * x, c

    body = trace(lstm, (3,), (3,))
    assert closed(body, [0]) == {0, 1}
    assert closed(body, [1]) == {1}
    assert closed(body, []) == set()


def test_nothing_flows_to_what_only_others_read():
    body = trace(lambda x, y: (eb.sqrt(x), y * 2.0, x + y), (3,), (3,))
    assert [closed(body, [at]) for at in range(3)] == [{0}, {1}, {2}]
    assert [flows(body, [at]) for at in range(3)] == [[True, False], [False, True], [True, True]]


def test_what_stops():
    def cell(x, y):
        return eb.stop_gradient(x), eb.tanh(eb.stop_gradient(x)) * y

    body = trace(cell, (3,), (3,))
    assert closed(body, [0]) == set()
    assert flows(body, [0, 1]) == [False, True]


def test_an_argument_is_told_apart_by_entries():
    """It may be the row of all outputs of another cell."""
    body = trace(lambda x: (eb.tanh(x[:2]), x[3:], x[2:]), (5,))
    assert reached(body, [0])[0].tolist() == [True, True, False, False, False]
    assert closed(body, [1]) == {1}
    assert closed(body, [2]) == {1, 2}


def test_nodes_that_were_merged_are_told_apart():
    model = eb.ParameterCollection(seed=0, dtype="float64")
    W, V = model.add_parameters((3, 2)), model.add_parameters((3, 2))
    body = compile_cell(
        trace(lambda x: (eb.exp(eb.log(W @ x)), eb.exp(eb.log(V @ x))), (2,)), ["x"], Options()
    ).splittable
    merged = [number for number, node in enumerate(body.nodes) if node.cuts]
    assert [body.nodes[number].cuts for number in merged] == [(3,)] * len(merged)
    assert merged
    found = reached(body, [1])
    assert all(found[number].tolist() == [False, True] for number in merged)


def test_a_large_argument_takes_no_search_of_its_entries():
    n = 1_000_000
    body = trace(lambda x: eb.sum(eb.square(x) * x), (n,))
    start = thread_time()
    np.searchsorted(np.array(range(1, n)), np.arange(n))
    searched = thread_time() - start
    start = thread_time()
    assert reached(body, [0])[0].all()
    assert thread_time() - start < searched
