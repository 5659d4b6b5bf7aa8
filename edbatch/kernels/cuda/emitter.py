"""What a GPU does with the steps of programs: it enqueues kernels and products; see `kernels.interpreter`."""

from __future__ import annotations

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.kernels.cuda.calls import Gpu, launch, multiply, multiply_each
from edbatch.kernels.cuda.enqueue import add_all, each_entry, gather, groups, in_entries, lists, note, read_scattered
from edbatch.kernels.cuda.geometry import THREADS, Grid, lanes_of_lists, over_rows
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

_PROCESSORS = int(Gpu.PROCESSORS)  # Numba takes plain integers for constants


@compiled
def _kernel(gpu: np.ndarray, kernel: int, step: np.void, given: np.ndarray, integers: Integers) -> None:
    m, entries, lanes = given[0], step["entries"], step["lanes"]
    items = integers.elements if step["over"] == OVER_ELEMENTS else m
    if step["over"] == OVER_LISTS:
        of_each = entries * (integers.elements // m)
        lanes = lanes_of_lists(items * step["groups"], of_each, gpu[_PROCESSORS])
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
def _compute_lists(gpu: np.ndarray, task: np.void, one: np.void, sources: Sources, out: Rows, copied: Rows) -> None:
    some, first, memory = task["operands"], one["operand"], sources.memory
    values = np.zeros(3 + 3 * (some + 1) + 1, np.int64)
    values[0], values[1] = one["n"], out.width // task["itemsize"]
    values[2] = at_index(sources.indices, one["offsets"])
    for at in range(some):
        operand, place = sources.operands[first + at], 3 + 3 * at
        if at == 0 and copied.address != 0:
            placed(values, place, copied, 0)
            continue
        listed = at_index(sources.indices, operand["first"]) if operand["access"] == GATHER else 0
        placed(values, place, operand_rows(operand, 0, memory), listed)
    values[3 + 3 * some], values[4 + 3 * some] = out.address, out.stride
    lists(gpu, task["kernel"], task["each"], sources.operands[first]["n"], values)


@compiled
def _add_to_operand(gpu: np.ndarray, task: np.void, one: np.void, sources: Sources, rows: Rows) -> None:
    """See `kernels.cpu.emitter`; rows that occur several times are given as groups.

    Those are written as an operand of several windows: `first` is where in the index buffer offsets, members and rows
    of the groups follow one another, `segments` the number of groups.
    """
    operand, n, positions = sources.operands[one["operand"]], one["n"], one["offsets"]
    if sources.memory.windows[operand["window"]]["scattered"] >= 0:
        _add_to_scattered(gpu, operand, one, sources, rows)
        return
    first = sources.indices + INDEX * operand["first"]
    source = in_entries(rows, task["itemsize"])
    if operand["access"] == GATHER_MANY:
        target = in_entries(window_rows(operand["window"], sources.memory), task["itemsize"])
        some = operand["segments"]
        members = first + INDEX * (some + 1)
        groups = members + INDEX * n
        values = np.array(
            [some, first, members, groups, source.address, source.stride, target.address, target.stride, source.width],
            np.int64,
        )
        x, y = over_rows(some, source.width)
        launch(gpu, task["to_groups"], Grid(x, y, 1, THREADS, 1), values, len(values))
        return
    target = in_entries(operand_rows(operand, 0, sources.memory), task["itemsize"])
    if operand["access"] == SHARED:
        add_all(gpu, task["to_one"], n, source.address, source.stride, target.address, source.width)
        return
    listed = 0 if positions < 0 else sources.indices + INDEX * positions
    to = first if operand["access"] == GATHER else 0
    values = np.array(
        [n, source.address, source.stride, listed, to, target.address, target.stride, source.width], np.int64
    )
    x, y = over_rows(n, source.width)
    launch(gpu, task["kernel"], Grid(x, y, 1, THREADS, 1), values, len(values))


@compiled
def _add_to_scattered(gpu: np.ndarray, operand: np.void, one: np.void, sources: Sources, rows: Rows) -> None:
    """The same to rows whose entries do not lie side by side; of these none is `SHARED`, see `backward_out`."""
    memory, access, n = sources.memory, operand["access"], one["n"]
    of = memory.scattered[memory.windows[operand["window"]]["scattered"]]
    first, axes = sources.indices + INDEX * operand["first"], of["axes"]
    if access == GATHER_MANY:
        some = operand["segments"]
        members = first + INDEX * (some + 1)
        values = np.empty(1 + of["lists_end"] - of["lists_given"], np.int64)
        values[1:] = memory.words[of["lists_given"] : of["lists_end"]]
        values[0], values[1 + axes] = some, first
        placed(values, 2 + axes, rows, members)
        placed(values, 2 + axes + PLACE, window_rows(operand["window"], memory), members + INDEX * n)
        groups(gpu, of["add_lists"], some * of["entries"], 1, values)
        return
    values = np.empty(1 + of["add_end"] - of["add_given"], np.int64)
    values[1:] = memory.words[of["add_given"] : of["add_end"]]
    values[0] = n
    placed(values, 1 + axes, rows, 0 if one["offsets"] < 0 else sources.indices + INDEX * one["offsets"])
    placed(values, 1 + axes + PLACE, operand_rows(operand, 0, memory), first if access == GATHER else 0)
    each_entry(gpu, of["add"], n, of["entries"], values)


#: See `kernels.interpreter`; the table of a GPU is described by `calls.Gpu`.
run_batches = interpreter(
    Emitter(
        multiply=multiply,
        multiply_each=multiply_each,
        kernel=_kernel,
        move=_move,
        flush=_flush,
        read_scattered=read_scattered,
        lists=_compute_lists,
        add=_add_to_operand,
        notes=True,
        reads_many=False,
    )
)
