import numpy as np

from edbatch.policy import TypedGraph
from edbatch.policy.ratio import new_blockers, new_direct_blockers, repeating_types


def test_the_path_reading_sees_through_other_types():
    graph = TypedGraph.from_lists(["b", "a", "b"], [[], [0], [1]])
    columns = (graph.types, graph.indptr, graph.operands)
    assert new_blockers(*columns, graph.topological, 2).total.tolist() == [1, 1]
    assert new_direct_blockers(*columns, 2)[1].tolist() == [2, 1]


def test_only_types_that_repeat_on_a_path_are_tracked():
    graph = TypedGraph.from_lists(["a", "b", "a", "b"], [[], [], [0], [0]])
    columns = (graph.types, graph.indptr, graph.operands, graph.topological, 2)
    assert repeating_types(*columns).tolist() == [True, False]
    blockers = new_blockers(*columns)
    assert blockers.row.tolist() == [0, -1]
    assert blockers.waiting.shape == (1, 4)


def test_the_direct_ratio_never_exceeds_the_path_ratio(random_graph):
    for seed in range(50):
        graph = random_graph(seed, 40, 5)
        columns, kinds = (graph.types, graph.indptr, graph.operands), len(graph.names)
        path = new_blockers(*columns, graph.topological, kinds).total
        direct = new_direct_blockers(*columns, kinds)[1]
        assert (path <= direct).all()
        assert (path > 0).all()
        assert path.sum() <= np.bincount(graph.types, minlength=kinds).sum()
