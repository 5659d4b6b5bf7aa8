"""What a layout is worth: every result and operand looked up in the offsets, whatever a planner believed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from edbatch.memory.layout.batched_op import BatchedOp, Variable


class Reach(Enum):
    """How a batched operation reaches its result or an operand."""

    VIEW = "view"  # contiguous, in the order of the batch: no copy
    BROADCAST = "broadcast"  # one variable for the whole batch: no copy
    GATHER = "gather"  # copied: before the operation, or (a result) after it


@dataclass(frozen=True)
class Verdict:
    """How the result or one operand of an operation lies in memory.

    Attributes:
        op: number of the operation.
        slot: number of the operand, or `RESULT`.
        reach: how it is reached.
        moved: entries copied; 0 unless it is a gather.
    """

    op: int
    slot: int
    reach: Reach
    moved: int


def verify(
    variables: Sequence[Variable], ops: Sequence[BatchedOp], offsets: Sequence[int]
) -> tuple[list[tuple[int, ...]], list[Verdict]]:
    """The best order for every batch under a layout, and how its result and operands are then reached.

    A batch runs in the order in which most entries need no copy; an ordered one as it is given.

    Args:
        variables: as given to the planner.
        ops: as given to the planner.
        offsets: per variable, where it starts in its space.

    Returns:
        Per operation, the order of its batch; and verdicts, operation by operation, the result first.

    Example:
        >>> variables = [Variable(name, 4) for name in "abcd"]
        >>> orders, verdicts = verify(variables, [BatchedOp("add", (3, 2), ((0, 1), (1, 1)))], [0, 4, 8, 12])
        >>> orders
        [(1, 0)]
        >>> [(verdict.reach.value, verdict.moved) for verdict in verdicts]
        [('view', 0), ('gather', 8), ('broadcast', 0)]
    """
    orders, verdicts = [], []
    for number, op in enumerate(ops):
        sizes = {slot: sum(variables[index].size for index in indices) for slot, indices in op.slots()}
        viewed: dict[tuple[int, ...], list[int]] = {}  # order of the batch -> what it makes a view
        as_given = tuple(range(len(op.result)))
        for slot, indices in op.slots():
            order = _view_order(variables, offsets, indices)
            if order is not None and (order == as_given or not op.ordered):
                viewed.setdefault(order, []).append(slot)
        best = max(viewed, key=lambda order: sum(sizes[slot] for slot in viewed[order]), default=as_given)
        orders.append(best)
        for slot, indices in op.slots():
            if slot in viewed.get(best, ()):
                verdicts.append(Verdict(number, slot, Reach.VIEW, 0))
            elif len(set(indices)) == 1:
                verdicts.append(Verdict(number, slot, Reach.BROADCAST, 0))
            else:
                verdicts.append(Verdict(number, slot, Reach.GATHER, sizes[slot]))
    return orders, verdicts


def _view_order(
    variables: Sequence[Variable], offsets: Sequence[int], indices: tuple[int, ...]
) -> tuple[int, ...] | None:
    """The order of the batch in which these variables follow each other without gaps, if there is one."""
    if len({variables[index].space for index in indices}) > 1:
        return None
    order = sorted(range(len(indices)), key=lambda i: offsets[indices[i]])
    end = offsets[indices[order[0]]]
    for i in order:
        if offsets[indices[i]] != end:
            return None
        end += variables[indices[i]].size
    return tuple(order)
