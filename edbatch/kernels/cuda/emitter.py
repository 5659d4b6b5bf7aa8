"""What a GPU does with the steps of programs: it enqueues kernels and products; see `kernels.interpreter`."""

from __future__ import annotations

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.kernels.cuda.calls import PROCESSORS, multiply, multiply_each
from edbatch.kernels.cuda.enqueue import add_all, each_entry, gather, groups, note, read_scattered
from edbatch.kernels.cuda.geometry import lanes_of, lanes_of_lists
from edbatch.kernels.interpreter import Emitter, interpreter
from edbatch.kernels.program import OVER_ELEMENTS, OVER_LISTS
from edbatch.kernels.tables import INTEGER_BYTES as INDEX
from edbatch.kernels.tables import (
    PLACE,
    Integers,
    Listed,
    Rows,
    Sources,
    at_index,
    operand_rows,
    placed,
    window_rows,
)
from edbatch.memory.plan.format import GATHER, GATHER_MANY, SHARED


@compiled
def _kernel(gpu: np.ndarray, kernel: int, step: np.void, given: np.ndarray, integers: Integers) -> None:
    m, entries = given[0], step["entries"]
    lanes = lanes_of(step["grouping"], step["groups"], entries)
    items = integers.elements if step["over"] == OVER_ELEMENTS else m
    if step["over"] == OVER_LISTS:
        of_each = entries * (integers.elements // m)
        lanes = lanes_of_lists(items * step["groups"], of_each, gpu[PROCESSORS])
    if lanes > 0:
        groups(gpu, kernel, items * step["groups"], lanes, given)
    else:
        each_entry(gpu, kernel, items, entries, given)


@compiled
def _move(gpu: np.ndarray, moves: np.ndarray, count: int, source: Listed, target: Listed, n: int) -> int:
    return note(moves, count, source, target, n)


@compiled
def _flush(gpu: np.ndarray, moves: np.ndarray, count: int) -> None:
    gather(gpu, moves, count)


@compiled
def _add_to_operand(gpu: np.ndarray, task: np.void, one: np.void, sources: Sources, rows: Rows) -> None:
    """See `kernels.cpu.emitter`; rows that occur several times are given as groups.

    Those are written as an operand of several windows: `first` is where in the index buffer offsets, members and rows
    of the groups follow one another, `segments` the number of groups.
    """
    memory, operand, n = sources.memory, sources.operands[one["operand"]], int(one["n"])
    access, first = operand["access"], sources.indices + INDEX * operand["first"]
    scattered = memory.windows[operand["window"]]["scattered"]  # never of what is `SHARED`, see `backward_out`
    entries, axes = rows.width // task["itemsize"], 1
    if access == SHARED:
        target, itemsize = operand_rows(operand, 0, memory), task["itemsize"]
        add_all(gpu, itemsize, n, rows.address, rows.stride // itemsize, target.address, rows.width // itemsize)
        return
    if access == GATHER_MANY:
        kernel, some, members = task["to_groups"], int(operand["segments"]), first + INDEX * (operand["segments"] + 1)
        values = np.zeros(3 + 2 * PLACE + 1, np.int64)
        values[1] = entries
        if scattered >= 0:
            of = memory.scattered[scattered]
            kernel, axes, entries = of["add_lists"], of["axes"], of["entries"]
            values = np.empty(1 + of["lists_end"] - of["lists_given"], np.int64)
            values[1:] = memory.words[of["lists_given"] : of["lists_end"]]
        values[0], values[1 + axes] = some, first
        placed(values, 2 + axes, rows, members)
        placed(values, 2 + axes + PLACE, window_rows(operand["window"], memory), members + INDEX * n)
        groups(gpu, kernel, some * entries, 1, values)
        return
    kernel, values = task["kernel"], np.zeros(2 + 2 * PLACE + 1, np.int64)
    values[1] = entries
    if scattered >= 0:
        of = memory.scattered[scattered]
        kernel, axes, entries = of["add"], of["axes"], of["entries"]
        values = np.empty(1 + of["add_end"] - of["add_given"], np.int64)
        values[1:] = memory.words[of["add_given"] : of["add_end"]]
    values[0] = n
    placed(values, 1 + axes, rows, at_index(sources.indices, one["offsets"]))
    placed(values, 1 + axes + PLACE, operand_rows(operand, 0, memory), first if access == GATHER else 0)
    each_entry(gpu, kernel, n, entries, values)


#: See `kernels.interpreter`; the table of a GPU is described by `calls.Gpu`.
run_batches = interpreter(
    Emitter(
        multiply=multiply,
        multiply_each=multiply_each,
        kernel=_kernel,
        move=_move,
        flush=_flush,
        read_scattered=read_scattered,
        add=_add_to_operand,
        notes=True,
    )
)
