import numpy as np

from edbatch.policy import TypedGraph
from edbatch.policy.frontier import new_frontier, new_record, run_batch
from edbatch.policy.ratio import new_blockers, new_direct_blockers, repeating_types, total_of
from edbatch.policy.typed_graph import GraphColumns


def start(graph):
    """(GraphColumns, Frontier, Blockers) of a graph of which nothing has run."""
    columns = GraphColumns(*graph.columns())
    frontier = new_frontier(columns, len(graph.names))
    return columns, frontier, new_blockers(columns, frontier)


def totals(graph):
    state = start(graph)
    return [total_of(*state, kind) for kind in range(len(graph.names))]


def test_the_path_reading_sees_through_other_types():
    graph = TypedGraph.from_lists(["b", "a", "b"], [[], [0], [1]])
    assert totals(graph) == [1, 1]
    assert new_direct_blockers(GraphColumns(*graph.columns()), 2)[1].tolist() == [2, 1]


def test_only_types_that_repeat_on_a_path_are_tracked():
    graph = TypedGraph.from_lists(["a", "b", "a", "b"], [[], [], [0], [0]])
    repeats, direct = repeating_types(GraphColumns(*graph.columns()), 2)
    assert repeats.tolist() == direct.tolist() == [True, False]
    blockers = start(graph)[2]
    assert blockers.row.tolist() == [0, -1]
    assert blockers.waiting.shape == (1, 4)


def test_asking_late_gives_what_asking_always_gives(random_graph):
    for seed in range(50):
        graph = random_graph(seed, 40, 4)
        kinds = range(len(graph.names))
        columns, frontier, often = start(graph)
        _, _, late = start(graph)
        record, random = new_record(len(graph)), np.random.default_rng(seed)
        while record.offsets[record.length[0]] < len(graph):
            now = [total_of(columns, frontier, often, kind) for kind in kinds]
            ready = np.flatnonzero(frontier.end > frontier.begin)
            if random.random() < 0.3:
                assert [total_of(columns, frontier, late, kind) for kind in kinds] == now
            run_batch(columns, frontier, record, random.choice(ready))


def test_the_direct_ratio_never_exceeds_the_path_ratio(random_graph):
    for seed in range(50):
        graph = random_graph(seed, 40, 5)
        direct = new_direct_blockers(GraphColumns(*graph.columns()), len(graph.names))[1]
        assert (np.array(totals(graph)) <= direct).all()
        assert min(totals(graph)) > 0
