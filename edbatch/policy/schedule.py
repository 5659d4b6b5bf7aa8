"""A schedule: which nodes run together, in which order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.policy.typed_graph import Int32s, Int64s, TypedGraph


@dataclass(eq=False, repr=False)
class Schedule:
    """A sequence of `len(schedule)` batches; batch k runs `order[offsets[k]:offsets[k + 1]]`, all of type `types[k]`.

    Args:
        order: int32[n], every node once.
        offsets: int64[batches + 1], starting with 0.
        types: int32[batches].

    Example:
        >>> import numpy as np
        >>> graph = TypedGraph.from_lists(["leaf", "leaf", "sum"], [[], [], [0, 1]])
        >>> schedule = Schedule(np.int32([0, 1, 2]), np.int64([0, 2, 3]), np.int32([0, 1]))
        >>> schedule.validate(graph)
        >>> len(schedule), [batch.tolist() for batch in schedule.batches()]
        (2, [[0, 1], [2]])
    """

    order: Int32s
    offsets: Int64s
    types: Int32s

    def __len__(self) -> int:
        return len(self.types)

    def __repr__(self) -> str:
        return f"Schedule({len(self.order)} nodes in {len(self)} batches)"

    def batches(self) -> list[Int32s]:
        """The node ids of each batch."""
        return np.split(self.order, self.offsets[1:-1]) if len(self) else []

    def validate(self, graph: TypedGraph) -> None:
        """Check that this is a schedule of `graph`.

        Raises:
            EdBatchError: a node is missing or runs twice, a batch is empty or mixes types, or a node
                does not run after its operands; the message names batch and node.
        """
        for name in ("order", "offsets", "types"):
            column = getattr(self, name)
            if not isinstance(column, np.ndarray) or column.ndim != 1 or column.dtype.kind not in "iu":
                got = f"{column.dtype}{list(column.shape)}" if isinstance(column, np.ndarray) else type(column).__name__
                raise EdBatchError(f"{name}: expected a list of integers as an array, got {got}")
        if not np.array_equal(np.sort(self.order), np.arange(len(graph))):
            raise EdBatchError(f"order must hold each of the {len(graph)} nodes once")
        offsets = self.offsets.astype(np.int64)  # differences of unsigned ones are never negative
        sizes = np.diff(offsets)
        if len(offsets) != len(self) + 1 or offsets[0] != 0 or offsets[-1] != len(graph):
            raise EdBatchError(f"offsets must have {len(self) + 1} entries from 0 to {len(graph)}")
        if (empty := np.flatnonzero(sizes < 1)).size:
            raise EdBatchError(f"batch {empty[0]} is empty")
        batch_of = np.empty(len(graph), np.int64)
        batch_of[self.order] = np.repeat(np.arange(len(self)), sizes)
        if (mixed := np.flatnonzero(graph.types != self.types[batch_of])).size:
            raise EdBatchError(f"batch {batch_of[mixed[0]]}: node {mixed[0]} has another type")
        users = np.repeat(np.arange(len(graph)), np.diff(graph.indptr))
        if (early := np.flatnonzero(batch_of[users] <= batch_of[graph.operands])).size:
            user, operand = users[early[0]], graph.operands[early[0]]
            raise EdBatchError(f"batch {batch_of[user]}: node {user} runs before its operand {operand} is there")
