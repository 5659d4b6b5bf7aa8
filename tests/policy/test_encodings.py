import numpy as np
import pytest

from edbatch.policy.critical import Critical, complete
from edbatch.policy.encodings import ENCODINGS, encode
from edbatch.policy.frontier import Frontier


def state(encoding, ready, letters, done=0.0, reach=None, last=None):
    """(letters, mark) of a frontier with ready[kind] nodes of each type, of last[kind] that remain."""
    kinds = np.flatnonzero(ready).astype(np.int32)
    letters = np.int32(letters)[kinds]
    begin = np.zeros(len(ready), np.int32)
    nothing = np.zeros(0, np.int32)
    frontier = Frontier(nothing, nothing, begin, np.int32(ready), np.int32(last or ready))
    reach = np.zeros((len(ready), len(ready) + 1), np.int32) if reach is None else np.int32(reach)
    critical = Critical(np.arange(len(ready), dtype=np.int32), np.zeros((0, 0), np.int32), reach)
    mark = encode(ENCODINGS[encoding], frontier, critical, letters, kinds, len(kinds), done)
    assert sorted(kinds.tolist()) == np.flatnonzero(ready).tolist()
    return letters.tolist(), mark


@pytest.mark.parametrize(
    ("encoding", "expected"), [("base", [5, 6, 7, 8]), ("max", [8, 5, 6, 7]), ("sort", [8, 6, 5, 7])]
)
def test_types_are_ordered_by_letter_or_frequency(encoding, expected):
    # types 0..4 are the policy's letters 8, 7, 9, 6, 5; type 2 is not ready
    assert state(encoding, [9, 1, 0, 4, 2], [8, 7, 9, 6, 5]) == (expected, 0)


def test_critical_marks_types_whose_batch_lowers_the_bound():
    # type 0's longest chain starts at its own ready nodes only; type 1's also below those of type 0
    reach = [[3, 2, 5], [2, 2, 4]]
    assert state("critical", [1, 5], [0, 1], reach=reach) == ([1, 0], 0b10)


def test_ahead_orders_types_by_the_work_ahead():
    assert state("ahead", [1, 5, 2], [0, 1, 2], reach=[[3, 2, 0, 5], [2, 2, 0, 4], [2, 3, 0, 5]])[0] == [0, 2, 1]


def test_a_type_whose_remaining_nodes_are_all_ready_needs_no_choice_nor_does_the_only_one():
    nothing = np.zeros(0, np.int32)
    frontier = Frontier(nothing, nothing, np.int32([0, 2]), np.int32([1, 5]), np.int32([2, 5]))
    kinds = np.int32([0, 1])
    assert [complete(frontier, kinds, count) for count in (2, 1, 0)] == [1, 0, -1]
