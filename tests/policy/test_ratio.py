import numpy as np

from edbatch.policy import TypedGraph
from edbatch.policy.frontier import new_blockers, new_frontier, new_record, run_batch, total_of, unblock
from edbatch.policy.typed_graph import GraphColumns


def start(graph):
    """(GraphColumns, Frontier, Blockers) of a graph of which nothing has run."""
    columns = GraphColumns(*graph.columns())
    return columns, new_frontier(columns, len(graph.names)), new_blockers(columns, len(graph.names), True)


def test_only_types_that_repeat_on_a_path_are_tracked():
    _, _, blockers = start(TypedGraph.from_lists(["a", "b", "a", "b"], [[], [], [0], [0]]))
    assert blockers.row.tolist() == [0, -1]
    assert blockers.waiting.shape == (1, 4)


def test_totals_are_those_of_what_remains_counted_anew(random_graph):
    for seed in range(40):
        graph = random_graph(seed, 40, 4)
        columns, frontier, blockers = start(graph)
        record, random = new_record(len(graph)), np.random.default_rng(seed)
        while (done := record.offsets[record.length[0]]) < len(graph):
            ran = set(record.order[:done].tolist())
            above = [set() for _ in range(len(graph))]  # the types of what a node waits for
            waits = [0] * len(graph.names)
            for node in graph.topological.tolist():
                for operand in graph.operands[graph.indptr[node] : graph.indptr[node + 1]].tolist():
                    if operand not in ran:
                        above[node] |= above[operand] | {int(graph.types[operand])}
                if node not in ran and int(graph.types[node]) not in above[node]:
                    waits[graph.types[node]] += 1
            asked = [kind for kind in range(len(graph.names)) if waits[kind] and random.random() < 0.7]
            assert [total_of(frontier, blockers, kind) for kind in asked] == [waits[kind] for kind in asked]
            kind = random.choice(np.flatnonzero(frontier.end > frontier.begin))
            unblock(columns, frontier, blockers, kind)
            run_batch(columns, frontier, record, kind)
