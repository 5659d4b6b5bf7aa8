"""What PQ trees are measured on."""

import random

import pytest

from edbatch.memory.layout.pq_tree import PQTree
from scripts.bench.pq_tree import all_lengths, conflicting_case, deep, pairs, reduction_seconds, short_intervals


@pytest.mark.parametrize("family", [short_intervals, all_lengths, pairs, deep])
def test_subsets_fit_an_order(family):
    rows = family(64, random.Random(0))
    tree = PQTree(range(64))
    assert all(tree.reduce(row) for row in rows)
    assert reduction_seconds(64, rows, rounds=1) > 0


def test_conflicts_come_with_noise():
    variables, ops = conflicting_case(0, noise=0.0)
    assert (len(variables), len(ops)) == (60, 25)
    assert ops == conflicting_case(0, noise=0.0)[1] != conflicting_case(0, noise=0.5)[1]
