import numpy as np
import pytest

from edbatch.errors import EdBatchError
from edbatch.policy import Schedule, TypedGraph

GRAPH = TypedGraph.from_lists(["a", "b", "a"], [[], [0], []])


def schedule(order, offsets, types):
    return Schedule(np.int32(order), np.int64(offsets), np.int32(types))


def test_a_valid_schedule_passes():
    good = schedule([2, 0, 1], [0, 2, 3], [0, 1])
    good.validate(GRAPH)
    assert len(good) == 2
    assert [batch.tolist() for batch in good.batches()] == [[2, 0], [1]]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (schedule([0, 1], [0, 1, 2], [0, 1]), "each of the 3 nodes once"),
        (schedule([0, 0, 1], [0, 2, 3], [0, 1]), "each of the 3 nodes once"),
        (schedule([0, 2, 1], [0, 2], [0, 1]), "offsets must have 3 entries"),
        (schedule([0, 2, 1], [], []), "offsets must have 1 entries"),
        (schedule([0, 2, 1], [0, 2, 2, 3], [0, 1, 1]), "batch 1 is empty"),
        (Schedule(np.int32([0, 2, 1]), np.uint32([0, 2, 1, 3]), np.int32([0, 1, 0])), "batch 1 is empty"),
        (schedule([0, 1, 2], [0, 2, 3], [0, 0]), "batch 0: node 1 has another type"),
        (schedule([1, 0, 2], [0, 1, 3], [1, 0]), "batch 0: node 1 runs before its operand 0"),
    ],
)
def test_each_fault_is_named(bad, message):
    with pytest.raises(EdBatchError, match=message):
        bad.validate(GRAPH)


@pytest.mark.parametrize("dtype", [np.int8, np.uint32, np.uint64])
def test_integers_of_any_size_make_a_schedule(dtype):
    """Policies may be anybody's."""
    Schedule(*(np.array(column, dtype) for column in ([2, 0, 1], [0, 2, 3], [0, 1]))).validate(GRAPH)


def test_a_batch_may_not_hold_an_operand_of_its_own():
    graph = TypedGraph.from_lists(["a", "a"], [[], [0]])
    with pytest.raises(EdBatchError, match="node 1 runs before its operand 0"):
        schedule([0, 1], [0, 2], [0]).validate(graph)


def test_an_empty_schedule_has_no_batches():
    empty = schedule([], [0], [])
    empty.validate(TypedGraph.checked([], [0], [], []))
    assert empty.batches() == []
