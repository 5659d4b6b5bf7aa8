"""The plan of a mini-batch: where every batch's rows and operands lie, as plain arrays, before anything runs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np


class Access(IntEnum):
    """How a batch reaches an operand."""

    SLICE = 0  # consecutive rows: a view
    SHARED = 1  # one row for the whole batch: a view
    STRIDED = 2  # rows at a constant distance: a view
    GATHER = 3  # rows of one window, copied side by side
    GATHER_MANY = 4  # rows of several windows, copied side by side


@dataclass
class Plan:
    """A mini-batch ready to run.

    Attributes:
        batches: int32 [batches, 6]: type, first row of the result, nodes, first operand, start of the payload in
            `indices` (column-major: all first integers, all second ...), start of a variadic batch's segment offsets.
        operands: int32 [operands, 5]: `Access`, window, first row, distance between rows, number of rows; for gathers:
            `Access`, window, start of the rows in `indices`, 0, number of rows; for `GATHER_MANY`: `Access`, -1,
            first segment, number of segments, number of rows.
        segments: int32 [segments, 4]: window, start of the rows in `indices`, start of the positions, number.
        indices: int32, everything the plan indexes with, in one buffer.
        rows: int32 [windows], rows in use by arena, numbered by its plain window.
    """

    batches: np.ndarray
    operands: np.ndarray
    segments: np.ndarray
    indices: np.ndarray
    rows: np.ndarray
