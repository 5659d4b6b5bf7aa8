"""The format of plans: where every batch's rows and operands lie, as tables of records, before anything runs.

A table is a NumPy array of records: compiled functions read `table[at]["field"]`. Python reads columns,
`table["field"]`, or makes named tuples of plain integers of its records: `Batch(*plan.batches[at].tolist())`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edbatch.base.records import record_type

# How a batch reaches an operand.
SLICE = 0  # consecutive rows: a view
SHARED = 1  # one row for the whole batch: a view
STRIDED = 2  # rows at a constant distance: a view
GATHER = 3  # rows of one window, copied side by side
GATHER_MANY = 4  # rows of several windows, copied side by side


class Batch(NamedTuple):
    """Nodes of one type that run together.

    Attributes:
        type: of the nodes.
        row: the first of the result.
        n: nodes.
        operand: number of the first operand.
        integers: where the nodes' integers begin in `Plan.integers`: all first ones, all second ones, ...
        offsets: where the n + 1 offsets of the nodes' lists begin in `Plan.indices`, if the nodes read lists.
    """

    type: int
    row: int
    n: int
    operand: int
    integers: int
    offsets: int


class Operand(NamedTuple):
    """The rows that a batch reads in one place of its nodes.

    Attributes:
        access: `SLICE`, ..., `GATHER_MANY`.
        window: what the rows are seen through; of `GATHER_MANY`: -1.
        first: the first row; of `GATHER`: where the list of rows begins in `Plan.indices`; of `GATHER_MANY`: number of
            the first segment.
        distance: from row to row; of gathers: 0.
        segments: of `GATHER_MANY`: how many.
        n: rows.
    """

    access: int
    window: int
    first: int
    distance: int
    segments: int
    n: int


class Segment(NamedTuple):
    """Those rows of an operand of several windows that are seen through one of them.

    Attributes:
        window: what they are seen through.
        rows: where the list of them begins in `Plan.indices`.
        positions: where the list of their places in the operand begins there; these ascend.
        n: rows.
    """

    window: int
    rows: int
    positions: int
    n: int


BATCH, OPERAND, SEGMENT = (record_type(form._fields, np.int32) for form in (Batch, Operand, Segment))


class Plan(NamedTuple):
    """Batches ready to run: a mini-batch, or all that a graph has run.

    Attributes:
        batches: of records `Batch`.
        operands: of records `Operand`.
        segments: of records `Segment`.
        indices: int32, everything the plan indexes with, in one buffer.
        integers: int32, per integer that batches read, where it is among the graph's: plans do not depend on it.
    """

    batches: np.ndarray
    operands: np.ndarray
    segments: np.ndarray
    indices: np.ndarray
    integers: np.ndarray

    def batch(self, number: int) -> Batch:
        """A batch."""
        return Batch(*self.batches[number].tolist())

    def operands_of(self, first: int, count: int) -> list[Operand]:
        """So many operands from a number on."""
        return [Operand(*one) for one in self.operands[first : first + count].tolist()]
