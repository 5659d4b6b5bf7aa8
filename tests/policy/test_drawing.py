import numpy as np
import pytest

from edbatch.policy import TypedGraph, get_policy, learn, lower_bound
from edbatch.policy.drawing import joined, samples_of


def parts(graph):
    """By union and find: the inner nodes that edges between inner nodes connect."""
    rows = [graph.operands[graph.indptr[node] : graph.indptr[node + 1]].tolist() for node in range(len(graph))]
    used = {operand for row in rows for operand in row}
    inner = [node for node in range(len(graph)) if rows[node] and node in used]
    leader = {node: node for node in inner}

    def find(node):
        while leader[node] != node:
            node = leader[node]
        return node

    for node in inner:
        for operand in rows[node]:
            if operand in leader:
                first, second = sorted((find(node), find(operand)))
                leader[second] = first
    found = {}
    for node in inner:
        found.setdefault(find(node), []).append(node)
    return list(found.values())


@pytest.mark.parametrize("seed", range(20))
def test_samples_are_the_connected_parts(random_graph, seed):
    graph = random_graph(seed, 50, 4)
    assert [nodes.tolist() for nodes in samples_of(graph)] == parts(graph)


def test_a_long_chain_with_numbers_out_of_order_is_one_sample():
    number = np.random.default_rng(0).permutation(5000)
    operands = [[] for _ in number]
    for before, after in zip(number[:-1].tolist(), number[1:].tolist(), strict=True):
        operands[after].append(before)
    graph = TypedGraph.from_lists(["a"] * len(number), operands)
    (sample,) = samples_of(graph)
    assert len(sample) == len(number) - 2  # without the first and the last


@pytest.mark.parametrize("seed", range(20))
def test_a_part_of_the_samples_is_a_graph_of_its_own(random_graph, seed):
    graph = random_graph(seed, 60, 4)
    samples = samples_of(graph)
    for chosen in (samples, samples[:1], samples[1::2]):
        if chosen:
            some = joined(graph, chosen)
            some = TypedGraph.checked(some.types, some.indptr, some.operands, some.names)
            get_policy("sufficient").schedule(some).validate(some)
            assert lower_bound(some) <= lower_bound(graph)


def test_what_samples_share_comes_along_and_what_adds_all_of_them_up_does_not():
    rows = [("W", [])]
    for _ in range(3):
        rows += [("cell", [0]), ("cell", [0, len(rows)]), ("loss", [0, len(rows) + 1])]
    ends = [node for node, (kind, _) in enumerate(rows) if kind == "cell" and rows[node][1] != [0]]
    graph = TypedGraph.from_lists([kind for kind, _ in rows] + ["total"], [row for _, row in rows] + [ends])
    samples = samples_of(graph)
    assert [len(nodes) for nodes in samples] == [2, 2, 2]
    some = joined(graph, samples[1:])
    assert [some.names[kind] for kind in some.types] == ["W", *["cell", "cell", "loss"] * 2]
    assert some.operands.tolist() == [0, 0, 1, 0, 2, 0, 0, 4, 0, 5]
    whole = joined(graph, samples)
    assert whole.types.tolist() == graph.types.tolist()
    assert whole.operands.tolist() == graph.operands.tolist()


def test_a_graph_of_which_nothing_can_be_drawn_is_learned_from_alone():
    empty = TypedGraph.checked([], [0], [], [])
    flat = TypedGraph.from_lists(["a", "b"], [[], [0]])
    assert samples_of(empty) == []
    assert samples_of(flat) == []
    assert learn([empty, flat], progress=False).training.batches == [0, 2]
