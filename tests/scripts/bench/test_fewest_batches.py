import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edbatch.policy import lower_bound
from scripts.bench.fewest_batches import LARGEST, fewest_batches
from tests.policy.conftest import make_random_graph
from tests.policy.exact import minimum_batches


def columns(graph):
    """A graph whose ids are topological, as kinds and operand lists."""
    position = {int(node): at for at, node in enumerate(graph.topological)}
    rows = [graph.operands[graph.indptr[node] : graph.indptr[node + 1]] for node in graph.topological]
    return [int(graph.types[node]) for node in graph.topological], [[position[int(x)] for x in row] for row in rows]


def check(kinds, operands, found):
    """Every node runs once, after its operands, with nodes of its kind."""
    place = {node: at for at, batch in enumerate(found.batches) for node in batch}
    assert sorted(node for batch in found.batches for node in batch) == list(range(len(kinds)))
    assert all(len({kinds[node] for node in batch}) == 1 for batch in found.batches)
    assert all(place[operand] < place[node] for node, row in enumerate(operands) for operand in row)


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**6), types=st.integers(1, 5))
def test_it_is_the_minimum(seed, types):
    graph = make_random_graph(seed, 14, types)
    kinds, operands = columns(graph)
    found = fewest_batches(kinds, operands, budget=10**9)
    check(kinds, operands, found)
    assert found.gap == 0
    assert len(found.batches) == minimum_batches(graph)


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10**6), types=st.integers(2, 6), nodes=st.sampled_from([14, 60]))
def test_a_search_cut_short_says_by_how_much(seed, types, nodes):
    graph = make_random_graph(seed, nodes, types)
    kinds, operands = columns(graph)
    found = fewest_batches(kinds, operands, budget=10)
    check(kinds, operands, found)
    assert lower_bound(graph) <= found.least <= len(found.batches)
    if nodes == 14:
        assert found.least <= minimum_batches(graph)


def test_what_is_too_large_is_batched_by_depth():
    n = LARGEST + 2
    operands = [[] if node < 2 else [node - 2] for node in range(n)]
    found = fewest_batches(["a"] * n, operands)
    check(["a"] * n, operands, found)
    assert (len(found.batches), found.least, found.gap) == (n // 2, 1, n // 2 - 1)


@pytest.mark.parametrize("operands", [[], [[]]])
def test_the_smallest(operands):
    assert fewest_batches(["a"] * len(operands), operands).batches == [[0]] * len(operands)
