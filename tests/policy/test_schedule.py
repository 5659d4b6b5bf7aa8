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


def test_a_batch_may_not_hold_an_operand_of_its_own():
    graph = TypedGraph.from_lists(["a", "a"], [[], [0]])
    with pytest.raises(EdBatchError, match="node 1 runs before its operand 0"):
        schedule([0, 1], [0, 2], [0]).validate(graph)


def test_an_empty_schedule_has_no_batches():
    empty = schedule([], [0], [])
    empty.validate(TypedGraph.checked([], [0], [], []))
    assert empty.batches() == []
