import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edbatch.errors import EdBatchError
from edbatch.policy import read_graph, write_graph


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_round_trip(random_graph, tmp_path_factory, seed):
    graph = random_graph(seed, 20, 5, ["a b", "TreeLSTM[I]", "#3", "x", "y"])
    path = tmp_path_factory.mktemp("graphs") / "graph.txt"
    write_graph(path, graph)
    again = read_graph(path)
    assert again.names == graph.names
    for column in ("types", "indptr", "operands"):
        assert np.array_equal(getattr(again, column), getattr(graph, column))
        assert getattr(again, column).dtype == getattr(graph, column).dtype


def test_sparse_numbers_become_dense_and_name_themselves(tmp_path):
    path = tmp_path / "graph.txt"
    path.write_text("# recorded\n3\n40 0\n\n7 1 0\n# a comment in between\n40 2 0 0\n# type 7 cell\n")
    graph = read_graph(path)
    assert graph.names == ("cell", "40")
    assert graph.types.tolist() == [1, 0, 1]
    assert graph.operands.tolist() == [0, 0, 0]


def test_operands_may_come_later(tmp_path):
    path = tmp_path / "graph.txt"
    path.write_text("2\n0 1 1\n0 0\n")
    assert read_graph(path).topological.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no graph in it"),
        ("two\n", ":1: expected integers, found 'two'"),
        ("1 2\n", ":1: expected the number of nodes alone"),
        ("-1\n", ":1: expected the number of nodes alone"),
        ("2\n0 0\n", ":2: the first line says 2 nodes, but 1 follow"),
        ("1\n0 0\n0 0\n", ":3: the first line says 1 nodes, but 2 follow"),
        ("1\n0 0.5\n", ":2: expected integers, found '0 0.5'"),
        ("1\n0\n", ":2: expected 'type n_inputs inputs...' with so many inputs, found [0]"),
        ("1\n-1 0\n", ":2: expected 'type n_inputs inputs...' with so many inputs, found [-1, 0]"),
        (f"1\n{'9' * 5000} 0\n", ":2: expected integers, found '999"),
        (f"1\n0 0\n# type {'9' * 5000} a\n", ":3: expected integers, found '999"),
        ("2\n0 0\n# note\n0 2 0\n", ":4: expected 'type n_inputs inputs...' with so many inputs, found [0, 2, 0]"),
        ("2\n0 0\n0 1 2\n", ":3: input 2 is not one of the nodes 0..1"),
        ("2\n0 1 1\n0 1 0\n", ": the graph has a cycle through node"),
        ("1\n0 0\n# type 0 a\n# type 1 b\n", ":4: no node has type 1, which is named there"),
        (f"1\n0 0\n# type 1{'0' * 30} b\n", ":3: no node has type 1000"),
        ("1\n0 0\n# type 0 a\n# type 00 a\n", ":4: type 0 already has a name, 'a'"),
        ("2\n0 0\n0 0\n# runs 1\n# runs 1\n", ":5: the line of where runs end occurs twice"),
        ("2\n0 0\n1 0\n# type 0 a\n# type 1 a\n", ": two types are named 'a'"),
    ],
)
def test_each_fault_is_named_with_its_line(tmp_path, text, message):
    path = tmp_path / "graph.txt"
    path.write_text(text)
    with pytest.raises(EdBatchError) as error:
        read_graph(path)
    assert str(error.value).startswith(str(path))
    assert message in str(error.value)
