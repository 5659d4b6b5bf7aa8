"""Pictures of graphs: which boxes, in which batches."""

import pytest

import edbatch as eb
from edbatch.errors import EdBatchError
from edbatch.runtime import reporting


@pytest.fixture
def model():
    made = eb.ParameterCollection(seed=0)
    made.add_parameters((3, 3), name="W")
    made.add_lookup_parameters((9, 3), name="E")
    return made


def chains(model, lengths):
    found = []
    for length in lengths:
        h = eb.lookup(model["E"], length % 9)
        for _ in range(length):
            h = eb.tanh(model["W"] @ h)
        found.append(eb.sum(h))
    return eb.sum(found)


def diagram(graph):
    return reporting.diagram_of(graph._evaluation, "sufficient")


def test_nodes_have_the_colours_of_their_batches(model):
    with eb.Graph(policy="sufficient") as graph:
        chains(model, [1, 2])
    graph.run()
    made = diagram(graph)
    assert made.title == "11 nodes of 5 types, run in 7 batches by sufficient"
    assert [box.text for box in made.boxes] == [
        "lookup 0", "matmul 1", "tanh 2", "sum 5",
        "lookup 0", "matmul 1", "tanh 2", "matmul 3", "tanh 4", "sum 5", "sum_list 6",
    ]  # fmt: skip
    assert [box.colour for box in made.boxes] == [0, 1, 2, 5, 0, 1, 2, 3, 4, 5, 6]
    reads = sorted((arrow.tail, arrow.head) for arrow in made.arrows)
    assert reads == [(0, 1), (1, 2), (2, 3), (3, 10), (4, 5), (5, 6), (6, 7), (7, 8), (8, 9), (9, 10)]
    assert "matmul    matmul(W[3,3], [3])" in made.legend


def test_of_many_nodes_the_batches_are_drawn(model):
    with eb.Graph(policy="sufficient") as graph:
        chains(model, [5] * 40).value()
    made = diagram(graph)
    assert len(made.boxes) == graph.report().batches == 13
    assert made.boxes[0].text == "lookup 0\n40 nodes"
    assert [box.text for box in made.boxes][-1] == "sum_list 12\n1 nodes"
    assert [arrow.text for arrow in made.arrows] == ["40x"] * 12


def test_graphs_that_cannot_be_drawn(tmp_path):
    with pytest.raises(EdBatchError, match="draw: expected a graph in which something was recorded, got an empty one"):
        eb.Graph().draw(tmp_path / "graph.svg")
    with pytest.raises(ZeroDivisionError), eb.Graph() as graph:
        eb.scalar(1 / 0)
    with pytest.raises(EdBatchError, match="this graph has no values"):
        graph.draw(tmp_path / "graph.svg")
