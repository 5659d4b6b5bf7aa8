"""Which graph is current, and whether values can be read there."""

import numpy as np
import pytest

import edbatch as eb


def seen_in(run, **options):
    """What functions that note the graph that is current have seen: classes, and whether it is a trace."""
    seen = []

    def note(*xs):
        graph = eb.current_graph()
        seen.append((isinstance(graph, eb.Graph), graph.is_trace))
        assert all(x.graph is graph or x.graph.base is graph for x in xs)
        assert graph.dtype == np.float64
        return [x.graph.is_trace for x in xs]

    with eb.options(**options), eb.Graph(dtype="float64") as graph:
        eb.forward(run(note))
        assert eb.current_graph() is graph
        assert not graph.is_trace
    return set(seen)


def of_cell(note):
    @eb.cell
    def cell(x):
        assert note(x) == [eb.current_graph().is_trace]
        return x * 2.0

    return [cell(eb.ones(2)), cell(eb.array(np.ones((3, 2))))]


def of_vertex(note):
    @eb.vertex
    def vertex(v):
        x = v.pull()
        assert note(x, eb.array([x, x])) == [True, True]
        v.scatter(x * 2.0)

    return [vertex(eb.InputGraph([0, 0], []), eb.array(np.ones((1, 2)))).scattered]


def of_replay(note):
    @eb.replay
    def replayed(n):
        note()
        return eb.ones(n) * 2.0

    return [replayed(3), replayed(3)]


def of_program(note):
    async def program(x):
        await x
        assert note(x) == [False]
        return x * 2.0

    return eb.run([program(eb.ones(2))])


def of_array(note):
    assert note(eb.ones(2), eb.array(np.ones((3, 2)))) == [False, False]
    return [eb.ones(2)]


@pytest.mark.parametrize("run", [of_cell, of_vertex, of_replay])
def test_in_what_is_kept_it_is_a_trace(run):
    assert seen_in(run) == {(False, True)}


@pytest.mark.parametrize("run", [of_program, of_array])
def test_elsewhere_it_is_the_graph(run):
    assert seen_in(run) == {(True, False)}


def test_a_cell_that_is_recorded_is_none():
    assert {is_trace for _, is_trace in seen_in(of_cell, cells=False)} == {False}


def test_there_may_be_none():
    with pytest.raises(eb.EdBatchError, match=r"no graph: build expressions inside `with eb\.Graph\(\) as graph:`"):
        eb.current_graph()
    with eb.Graph() as outer:
        with eb.Graph() as inner:
            assert eb.current_graph() is inner
        assert eb.current_graph() is outer
