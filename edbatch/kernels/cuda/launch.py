"""The loop that enqueues a mini-batch: the programs that the CPU's interpreter runs, batch after batch, as kernels."""

from __future__ import annotations

import numpy as np

from edbatch.compiled import compiled
from edbatch.kernels.cuda.calls import Gpu, launch, multiply, multiply_each
from edbatch.kernels.cuda.enqueue import MOVE, MOVES, add_all, by_groups, entries, gather, groups, move, segment_reduce
from edbatch.kernels.cuda.geometry import THREADS, over_rows
from edbatch.kernels.program import ADD, ADD_ROWS, LEFT, NONE, RIGHT, SUM, TRANSPOSED, Move, Step
from edbatch.kernels.tables import (
    BYTES,
    Memory,
    all_contiguous,
    block_rows,
    computed_rows,
    fill,
    given_words,
    grouped,
    most_slots,
    operand_rows,
    place_slots,
    result_rows,
    window_rows,
)
from edbatch.memory.plan import GATHER, GATHER_MANY, SHARED

# Numba takes plain integers for constants.
_UNUSED, _IF_NOT_ROWS, _ALWAYS, _UNLESS_FOLLOWED = map(
    int, (Move.UNUSED, Move.IF_NOT_ROWS, Move.ALWAYS, Move.UNLESS_FOLLOWED)
)
_MULTIPLY, _KERNEL, _COPY, _LOOKUP, _MULTIPLY_EACH, _CALL, _PYTHON = map(int, Step)
_SEGMENTS_KERNEL = int(Gpu.SEGMENT_REDUCE)
_ADD_KERNEL, _ADD_GROUPED_KERNEL, _ADD_ALL_KERNEL = map(int, (Gpu.ADD_ROWS, Gpu.ADD_GROUPED, Gpu.ADD_ALL))


@compiled
def enqueue_steps(
    gpu: np.ndarray,
    steps: np.ndarray,
    first: int,
    stop: int,
    places: np.ndarray,
    kernels: np.ndarray,
    addresses: np.ndarray,
    strides: np.ndarray,
    lists: np.ndarray,
    payload: int,
    payload_stride: int,
    m: int,
) -> int:
    """Enqueue steps on m calls, up to the first that is left to the caller; see `interpreter.run_steps`.

    Args:
        lists: per slot, the address of the list of its rows; 0: the calls' rows follow one another.
        payload: address of the calls' first integers; the next begin `payload_stride` integers later.
    """
    moves = np.empty((MOVES, MOVE), np.int64)
    for at in range(first, stop):
        kind, a, b, c, d, e, f, g, h, i, j, k = steps[at]
        if kind == _MULTIPLY:
            multiply(
                gpu, m, e, d, addresses[a] + BYTES * b, strides[a], addresses[c], f, g & TRANSPOSED, g & ADD,
                addresses[h] + BYTES * i, strides[h],
            )  # fmt: skip
        elif kind == _KERNEL:
            values = np.empty(1 + given_words(d, e), np.int64)
            values[0] = m
            fill(values[1:], b, d, places[c : c + d + e], addresses, strides, lists)
            if g:
                groups(gpu, kernels[a], m, b, values)
            else:
                entries(gpu, kernels[a], m, b, values)
        elif kind == _CALL:
            values = np.empty(2 + 3 * c, np.int64)
            values[0], values[1] = m, payload + BYTES * f * payload_stride if f >= 0 else 0
            for place in range(c):
                slot = places[b + place, 0]
                values[2 + 3 * place] = addresses[slot] + BYTES * places[b + place, 1]
                values[3 + 3 * place] = strides[slot]
                values[4 + 3 * place] = lists[slot]
            by_groups(gpu, kernels[a], m * d, e, values)
        elif kind == _COPY:
            move(
                moves, 0, addresses[a] + BYTES * b, strides[a], 0, 0, m, addresses[c] + BYTES * d, strides[c], e
            )  # fmt: skip
            gather(gpu, moves, 1)
        elif kind == _LOOKUP:
            target = addresses[d] + BYTES * e
            if c >= 0:
                rows = payload + BYTES * c * payload_stride
                move(moves, 0, addresses[a], b, rows, 0, m, target, strides[d], b)
            else:
                move(moves, 0, addresses[a] + BYTES * b * (-1 - c), 0, 0, 0, m, target, strides[d], b)
            gather(gpu, moves, 1)
        elif kind == _MULTIPLY_EACH:
            turned = i & TRANSPOSED
            multiply_each(
                gpu, m, e, g, f,
                addresses[a] + BYTES * b, strides[a], h if i & LEFT else f, turned if i & LEFT else 0,
                addresses[c] + BYTES * d, strides[c], h if i & RIGHT else g, turned if i & RIGHT else 0,
                addresses[j] + BYTES * k, strides[j],
            )  # fmt: skip
        else:
            return at
    return stop


@compiled
def _gather_segments(
    moves: np.ndarray, count: int, operand: np.void, segments: np.ndarray, host: np.ndarray, indices: int,
    memory: Memory, begin: int, end: int, target: int, stride: int, width: int,
) -> int:  # fmt: skip
    """Note the moves of rows `begin` to `end` of an operand of several windows; positions in a segment ascend."""
    for at in range(operand["first"], operand["first"] + operand["segments"]):
        segment = segments[at]
        rows, positions, n = segment["rows"], segment["positions"], segment["n"]
        low, high = 0, n
        if begin > 0 or end < host[positions + n - 1] + 1:
            low, high = np.searchsorted(host[positions : positions + n], np.array([begin, end]))
        source, source_stride = window_rows(segment["window"], memory)
        count = move(
            moves, count, source, source_stride, indices + BYTES * (rows + low), indices + BYTES * (positions + low),
            high - low, target - BYTES * begin * stride, stride, width,
        )  # fmt: skip
    return count


@compiled
def _reduce_lists(
    gpu: np.ndarray, moves: np.ndarray, operand: np.void, segments: np.ndarray, host: np.ndarray, indices: int,
    offsets: int, memory: Memory, n: int, out: int, stride: int, width: int, scratch: int, kind: int,
) -> None:  # fmt: skip
    """A batch of reductions of lists; what comes from several windows is first put side by side.

    Args:
        kind: see `Column` in `lists.cu`.
    """
    total, rows = operand["n"], 0
    if operand["access"] == GATHER_MANY:
        source, source_stride = scratch, width
        count = _gather_segments(moves, 0, operand, segments, host, indices, memory, 0, total, scratch, width, width)
        gather(gpu, moves, count)
    else:
        source, source_stride = operand_rows(operand, 0, memory)
        if operand["access"] == GATHER:
            rows = indices + BYTES * operand["first"]
    segment_reduce(
        gpu, gpu[_SEGMENTS_KERNEL], n, total, indices + BYTES * offsets, rows, source, source_stride, out, stride,
        width, kind,
    )  # fmt: skip


@compiled
def _add_to_operand(
    gpu: np.ndarray, operand: np.void, indices: int, positions: int, memory: Memory, source: int, stride: int,
    width: int, n: int,
) -> None:  # fmt: skip
    """See `interpreter`; rows that occur several times are given as groups.

    Those are written as an operand of several windows: `first` is where in the index buffer offsets, members and rows
    of the groups follow one another, `segments` the number of groups.
    """
    access, first = operand["access"], indices + BYTES * operand["first"]
    target, target_stride = window_rows(operand["window"], memory)
    listed = 0 if positions < 0 else indices + BYTES * positions
    if access == GATHER_MANY:
        some = operand["segments"]
        members = first + BYTES * (some + 1)
        rows = members + BYTES * n
        values = np.array([some, first, members, rows, source, stride, target, target_stride, width], np.int64)
        x, y = over_rows(some, width)
        launch(gpu, gpu[_ADD_GROUPED_KERNEL], x, y, 1, THREADS, 1, values, len(values))
        return
    rows = first if access == GATHER else 0
    target, target_stride = operand_rows(operand, 0, memory)
    if access == SHARED:
        add_all(gpu, gpu[_ADD_ALL_KERNEL], n, source, stride, target, width)
    else:
        values = np.array([n, source, stride, listed, rows, target, target_stride, width], np.int64)
        x, y = over_rows(n, width)
        launch(gpu, gpu[_ADD_KERNEL], x, y, 1, THREADS, 1, values, len(values))


@compiled
def enqueue_batches(
    gpu: np.ndarray, first: int, stop: int, host: np.ndarray, indices: int, scratch: int, *tables: np.ndarray
) -> int:
    """Enqueue the batches of a plan from `first` on, up to the first that has no program, or cannot be run here.

    Args:
        gpu: see `calls.Gpu`.
        host, indices: the plan's index buffer on the host, and its address on the device.

    The others, and what is returned, are as of `interpreter.run_batches`, with addresses on the device.
    """
    plan, memory, programs = grouped(tables)
    segments = plan.segments
    addresses, strides, lists = np.empty((3, most_slots(programs.programs)), np.int64)
    moves = np.empty((len(segments) + len(plan.operands) + MOVES, MOVE), np.int64)
    for batch in range(first, stop):
        one = plan.batches[batch]
        kind, row, n, offsets = one["type"], one["row"], one["n"], one["offsets"]
        operands = plan.operands[one["operand"] :]
        program = programs.program_of[kind]
        if program == ADD_ROWS:
            if memory.windows[operands[0]["window"], 2] == 0:
                return batch
            out, stride, width = result_rows(kind, row, memory)
            _add_to_operand(gpu, operands[0], indices, offsets, memory, out, stride, width, n)
            continue
        if program == NONE:
            return batch
        if program < 0:
            if not all_contiguous(operands[:1], segments, memory.windows):
                return batch
            out, stride, width = result_rows(kind, row, memory)
            _reduce_lists(
                gpu, moves, operands[0], segments, host, indices, offsets, memory, n, out, stride, width,
                scratch, 0 if program == SUM else ADD_ROWS - program,
            )  # fmt: skip
            continue
        (
            slot_begin,
            slot_end,
            argument_begin,
            argument_end,
            step_begin,
            step_end,
            fixed,
            rows,
            kernel,
            place,
        ) = programs.programs[program]
        operands = operands[: argument_end - argument_begin]
        if not all_contiguous(operands, segments, memory.windows):
            return batch
        out, out_stride, out_width = result_rows(kind, row, memory)
        result, result_stride = computed_rows(memory.kept[kind], n, out, out_stride)
        block = block_rows(n, rows)
        for begin in range(0, n, block):
            m = min(block, n - begin)
            place_slots(
                programs.slots[slot_begin:slot_end], addresses, strides, scratch,
                result + BYTES * begin * result_stride, result_stride, programs.addresses[fixed:], m,
            )  # fmt: skip
            lists[: slot_end - slot_begin] = 0
            count = 0
            for number in range(len(operands)):
                slot, entries, moved = programs.arguments[argument_begin + number]
                if moved == _UNUSED:
                    continue
                operand = operands[number]
                access, target, to = operand["access"], addresses[slot], strides[slot]
                if access == GATHER_MANY:
                    count = _gather_segments(
                        moves, count, operand, segments, host, indices, memory, begin, begin + m, target, to,
                        entries,
                    )  # fmt: skip
                    continue
                source, stride = operand_rows(operand, begin, memory)
                listed = indices + BYTES * (operand["first"] + begin) if access == GATHER else 0
                if access == GATHER:
                    in_place = moved == _UNLESS_FOLLOWED
                else:
                    in_place = moved != _ALWAYS and (moved != _IF_NOT_ROWS or stride >= entries)
                if in_place:
                    addresses[slot], strides[slot], lists[slot] = source, stride, listed
                else:
                    count = move(moves, count, source, stride, listed, 0, m, target, to, entries)
            gather(gpu, moves, count)
            enqueue_steps(
                gpu, programs.steps, step_begin, step_end, programs.places[place:], programs.kernels[kernel:],
                addresses, strides, lists, indices + BYTES * (one["integers"] + begin), n, m,
            )  # fmt: skip
        if result != out:
            move(moves, 0, result, result_stride, 0, 0, n, out, out_stride, out_width)
            gather(gpu, moves, 1)
    return stop
