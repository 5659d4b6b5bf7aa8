"""What a GPU does with the steps of programs: it enqueues kernels and products; see `kernels.interpreter`."""

from __future__ import annotations

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.kernels.cuda.calls import PROCESSORS, multiply, multiply_each
from edbatch.kernels.cuda.enqueue import add_all, each_entry, gather, groups, note
from edbatch.kernels.cuda.geometry import lanes_of_lists
from edbatch.kernels.interpreter import Emitter, interpreter
from edbatch.kernels.program import OVER_ELEMENTS, OVER_LISTS
from edbatch.kernels.tables import INTEGER_BYTES as INDEX
from edbatch.kernels.tables import (
    Integers,
    Listed,
    Rows,
    Sources,
    adding,
    operand_rows,
    window_rows,
)
from edbatch.memory.plan.format import SHARED


@compiled
def _kernel(gpu: np.ndarray, kernel: int, step: np.void, given: np.ndarray, integers: Integers) -> None:
    m, entries = given[0], step["entries"]
    lanes, items = step["lanes"], integers.elements if step["over"] == OVER_ELEMENTS else m
    if step["over"] == OVER_LISTS:
        of_each = entries * (integers.elements // m)
        lanes = lanes_of_lists(items * step["groups"], of_each, gpu[PROCESSORS])
    if lanes > 0:
        groups(gpu, kernel, items * step["groups"], lanes, given)
    else:
        each_entry(gpu, kernel, items, entries, given)


@compiled
def _add_groups(gpu: np.ndarray, task: np.void, one: np.void, sources: Sources, rows: Rows) -> None:
    """All rows are added to one, or those of groups, which are written as an operand of several windows.

    Then `first` is where in the index buffer offsets, members and rows of the groups follow one another, `segments` the
    number of groups.
    """
    memory, operand, n, itemsize = sources.memory, sources.operands[one["operand"]], int(one["n"]), task["itemsize"]
    if operand["access"] == SHARED:  # by rows that are not scattered, see `backward_out`
        whole = operand_rows(operand, 0, memory).address
        add_all(gpu, itemsize, n, rows.address, rows.stride // itemsize, whole, rows.width // itemsize)
        return
    some, first = int(operand["segments"]), sources.indices + INDEX * operand["first"]
    members = first + INDEX * (some + 1)
    target = Listed(window_rows(operand["window"], memory), members + INDEX * n)
    kernel, entries, given = adding(task, memory, operand["window"], some, Listed(rows, members), target, first)
    groups(gpu, kernel, some * entries, 1, given)


#: See `kernels.interpreter`; the table of a GPU is described by `calls`.
run_batches = interpreter(
    Emitter(
        multiply=multiply,
        multiply_each=multiply_each,
        kernel=_kernel,
        each_entry=each_entry,
        move=note,
        flush=gather,
        add_groups=_add_groups,
        notes=True,
    )
)
