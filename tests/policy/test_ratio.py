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


def chains_and_trees(seed):
    """A graph in which nodes of types wait for others of their own directly, and of one type through another."""
    random = np.random.default_rng(seed)
    types, operands, ends = [], [], {"a": [], "b": [], "c": []}
    for _ in range(60):
        kind = "abcd"[random.integers(4)]
        below = [] if kind == "d" else [ends[kind].pop() for _ in range(min(len(ends[kind]), random.integers(3)))]
        if kind == "c" and below:  # something stands between
            types.append("e")
            operands.append(below)
            below = [len(types) - 1]
        types.append(kind)
        operands.append(below)
        if kind != "d":
            ends[kind].append(len(types) - 1)
    return TypedGraph.from_lists(types, operands)


def test_totals_are_those_of_what_remains_counted_anew(random_graph):
    for seed in range(40):
        graph = random_graph(seed, 40, 4) if seed % 2 else chains_and_trees(seed)
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
            assert [total_of(columns, frontier, blockers, kind) for kind in asked] == [waits[kind] for kind in asked]
            run_batch(columns, frontier, record, random.choice(np.flatnonzero(frontier.end > frontier.begin)))


def test_of_chains_and_trees_direct_operands_say_what_waits():
    graph = chains_and_trees(0)
    direct = dict(zip(graph.names, start(graph)[2].direct.tolist(), strict=True))
    assert [direct[kind] for kind in "abcd"] == [True, True, False, False]
