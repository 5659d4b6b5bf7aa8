import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edbatch.errors import EdBatchError
from edbatch.policy import TypedGraph, lower_bound
from tests.policy.exact import LARGEST, minimum_batches


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), types=st.integers(1, 4))
def test_the_bound_is_below_the_optimum(random_graph, seed, types):
    graph = random_graph(seed, 12, types)
    assert lower_bound(graph) <= minimum_batches(graph)


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10**6), types=st.integers(2, 4))
def test_lemma_1_a_type_of_ratio_one_starts_an_optimal_schedule(random_graph, seed, types):
    graph = random_graph(seed, 12, types)
    above = np.zeros((len(graph), len(graph)), bool)
    for node in graph.topological:
        for operand in graph.operands[graph.indptr[node] : graph.indptr[node + 1]]:
            above[node] |= above[operand]
            above[node, operand] = True
    ready = ~above.any(axis=1)
    best = minimum_batches(graph)
    for kind, name in enumerate(graph.names):
        same = graph.types == kind
        total = same & ~(above & same).any(axis=1)
        if ready[same].any() and (ready & same).sum() == total.sum():
            assert minimum_batches(graph, [name]) == best


def test_chains_are_a_common_supersequence():
    # the proof of Theorem 3: strings "ab" and "ba" need "aba" or "bab"
    graph = TypedGraph.from_lists(["a", "b", "b", "a"], [[], [0], [], [2]])
    assert minimum_batches(graph) == 3


def test_large_graphs_and_types_that_are_not_ready_are_refused():
    with pytest.raises(EdBatchError, match=f"{LARGEST + 1} nodes, at most {LARGEST}"):
        minimum_batches(TypedGraph.from_lists(["a"] * (LARGEST + 1), [[]] * (LARGEST + 1)))
    with pytest.raises(EdBatchError, match="no node of type 'b' is ready"):
        minimum_batches(TypedGraph.from_lists(["a", "b"], [[], [0]]), ["b"])
