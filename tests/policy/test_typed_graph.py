import numpy as np
import pytest

from edbatch.errors import EdBatchError
from edbatch.policy import TypedGraph


def test_successors_are_the_reversed_edges(random_graph):
    for seed in range(50):
        graph = random_graph(seed)
        forward = sorted(
            (int(operand), node)
            for node in range(len(graph))
            for operand in graph.operands[graph.indptr[node] : graph.indptr[node + 1]]
        )
        indptr, users = graph.successors
        backward = [(node, int(user)) for node in range(len(graph)) for user in users[indptr[node] : indptr[node + 1]]]
        assert backward == forward


def test_topological_order_puts_operands_first(random_graph):
    for seed in range(50):
        graph = random_graph(seed)
        place = np.argsort(graph.topological)
        users = np.repeat(np.arange(len(graph)), np.diff(graph.indptr))
        assert (place[graph.operands] < place[users]).all()


def test_ids_that_are_topological_stay_the_order(random_graph):
    graph = random_graph(3, shuffle=False)
    assert graph.topological.tolist() == list(range(len(graph)))


def test_an_empty_graph_is_a_graph():
    graph = TypedGraph.checked([], [0], [], [])
    assert len(graph) == 0
    assert len(graph.topological) == 0


@pytest.mark.parametrize(
    ("types", "indptr", "operands", "names", "message"),
    [
        ([0, 1], [0, 0, 1], [0], ["a"], "node 1: type 1, but there are 1 names"),
        ([-1], [0, 0], [], ["a"], "node 0: type -1"),
        ([0, 0], [0, 0, 1], [2], ["a"], "node 1: operand 2, but there are 2 nodes"),
        ([0, 0], [0, 1, 1], [-1], ["a"], "node 0: operand -1"),
        ([0, 0], [0, 1], [0], ["a"], "indptr must have 3 entries"),
        ([0, 0], [0, 1, 1], [0, 0], ["a"], "indptr must have 3 entries from 0 to 2"),
        ([0, 0, 0], [0, 2, 1, 2], [1, 1], ["a"], "node 1: indptr falls there"),
        ([0], [0, 0], [], ["a", "a"], "two types are named 'a'"),
        ([0], [0, 1], [0], ["a"], "cycle through node 0 -> 0"),
        ([0, 0, 0], [0, 1, 2, 3], [1, 2, 0], ["a"], "cycle through node"),
        ([0.5], [0, 0], [], ["a"], "types: expected integers, got 0.5 of float64"),
        ([0], [0, 0], [1.0], ["a"], "operands: expected integers, got 1.0 of float64"),
        ([2**32], [0, 0], [], ["a"], "types: expected integers from -2147483648 to 2147483647, got 4294967296"),
    ],
)
def test_bad_columns_are_named(types, indptr, operands, names, message):
    with pytest.raises(EdBatchError, match=message):
        TypedGraph.checked(types, indptr, operands, names)


def test_a_cycle_is_shown_in_the_direction_of_the_data():
    with pytest.raises(EdBatchError, match=r"node 1 -> 2 -> 1$|node 2 -> 1 -> 2$"):
        TypedGraph.from_lists(["a", "a", "a"], [[], [0, 2], [1]])


def test_a_long_cycle_is_shortened():
    with pytest.raises(EdBatchError, match=r"\.\.\."):
        TypedGraph.from_lists(["a"] * 30, [[(node + 1) % 30] for node in range(30)])


def test_a_long_cycle_is_found_in_linear_time():
    """By how often nodes are compared with one another."""

    class Node(int):
        compared = 0

        def __eq__(self, other):
            Node.compared += 1
            return int(self) == int(other)

        __hash__ = int.__hash__

    class Operands:
        def __getitem__(self, rows):
            return self

        def tolist(self):
            self.node = Node((self.node + 1) % 2000)
            return [self.node]

    graph = TypedGraph(np.zeros(2000, np.int32), np.arange(2001), Operands(), ("a",))
    graph.operands.node = 0
    assert graph._cycle(np.arange(2000)) == "node 0 -> 1999 -> 1998 -> 1997 -> ... -> 3 -> 2 -> 1 -> 0"
    assert Node.compared < 20_000
