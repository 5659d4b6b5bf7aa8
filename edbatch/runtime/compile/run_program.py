"""A program run by itself, on rows that are given as arrays: as a plan of one batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from edbatch.compiling.directory import Directory
from edbatch.kernels.backend import Backend
from edbatch.kernels.tables import Memory
from edbatch.memory.plan.addresses import COLUMNS, KEPT, ROWS, SCATTERED, Columns, Rows
from edbatch.memory.plan.format import BATCH, OPERAND, SEGMENT, SHARED, SLICE, Batch, Operand, Plan
from edbatch.memory.plan.pool import pool_of
from edbatch.runtime.compile.program import Program
from edbatch.runtime.compile.program_table import DerivativePrograms


def run_program(
    program: Program,
    out: Any,
    given: Sequence[Any],
    integers: np.ndarray,
    programs: DerivativePrograms,
    backend: Backend,
) -> None:
    """Fill contiguous rows [n, *shape] by a program.

    Args:
        given: rows [n or 1, *shape] of the arguments; of one row all calls get the same.
        integers: all first ones of the calls, all second ones, ...
        programs: that it becomes one of.
    """
    number, pool = programs.number(program), pool_of(backend)
    _held = programs.prepare([number], programs)
    n, address, some = len(out), backend.address, len(given)
    arrays = [*(x if x.flags.c_contiguous else x.copy() for x in given), out]
    widths = [x.itemsize * (x.size // len(x)) for x in arrays]
    operands = [Operand(SLICE if len(x) == n else SHARED, at, 0, int(len(x) == n), 0, n) for at, x in enumerate(given)]
    plan = Plan(
        np.array([Batch(number, 0, n, 0, 0, -1)], BATCH),
        np.array(operands, OPERAND),
        np.zeros(0, SEGMENT),
        np.zeros(0, np.int32),
        np.arange(len(integers), dtype=np.int32),
    )
    memory = Memory(
        np.array([Columns(at, 0, width) for at, width in enumerate(widths)], COLUMNS),
        np.array([Rows(address(x), width) for x, width in zip(arrays, widths, strict=True)], ROWS),
        np.full(programs.count, some, np.int32),
        np.zeros(programs.count, KEPT),
        np.zeros(0, SCATTERED),
        np.zeros(0, np.int64),
    )
    made = Directory(plan)
    scratch = pool.acquire(programs.scratch(made, 0, 1), np.dtype(np.uint8))
    values = np.ascontiguousarray(integers, np.int32)
    tables = made, backend.lists(made, values), Directory(memory)
    backend.run_batches(0, 1, *tables, programs, address(scratch))
    pool.release(scratch)
