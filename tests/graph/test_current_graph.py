"""Which graph is current, and whether values can be read there."""

import numpy as np
import pytest

import edbatch as eb


def seen_in(record, **options):
    """Of where a function's `note` is called: whether a `Graph` is current, and whether that is a trace."""
    seen = set()

    def note(*xs):
        graph = eb.current_graph()
        seen.add((isinstance(graph, eb.Graph), graph.is_trace))
        assert {x.graph.is_trace for x in xs} <= {graph.is_trace}
        assert graph.dtype == np.float64

    with eb.options(**options), eb.Graph(dtype="float64") as graph:
        eb.forward([record(note)])
        assert eb.current_graph() is graph
    return seen


def of_cell(note):
    cell = eb.cell(lambda x: (note(x), x * 2.0)[1])
    cell(eb.array(np.ones((3, 2))))
    return cell(eb.ones(2))


def of_vertices(note):
    @eb.vertex
    def vertex(v):
        x = v.pull()
        note(x, eb.array([x, x]))
        v.scatter(x * 2.0)

    return vertex(eb.InputGraph([0, 0], []), eb.array(np.ones((1, 2)))).scattered


def of_replay(note):
    return eb.replay(lambda n: (note(), eb.ones(n))[1])(3)


def of_program(note):
    async def program(x):
        await x
        note(x, eb.array([x, x]))
        return x * 2.0

    return eb.run([program(eb.ones(2))])[0]


@pytest.mark.parametrize("record", [of_cell, of_vertices, of_replay])
def test_in_what_is_kept_it_is_a_trace(record):
    assert seen_in(record) == {(False, True)}


def test_elsewhere_it_is_the_graph():
    assert seen_in(of_program) == {(True, False)}
    assert {is_trace for _, is_trace in seen_in(of_cell, cells=False)} == {False}


def test_there_may_be_none():
    with pytest.raises(eb.EdBatchError, match=r"no graph: build expressions inside `with eb\.Graph\(\) as graph:`"):
        eb.current_graph()
    with eb.Graph() as outer:
        with eb.Graph() as inner:
            assert eb.current_graph() is inner
        assert eb.current_graph() is outer
