"""The loop that enqueues a mini-batch: the programs that the CPU's interpreter runs, batch after batch, as kernels."""

from __future__ import annotations

import numpy as np

from edbatch.compiled import compiled
from edbatch.kernels.cuda.calls import Gpu, launch, multiply, multiply_each
from edbatch.kernels.cuda.enqueue import MOVE, MOVES, add_all, by_groups, entries, gather, groups, move, segment_reduce
from edbatch.kernels.cuda.geometry import THREADS, over_rows
from edbatch.kernels.program import (
    ADD,
    ADD_ROWS,
    ALWAYS,
    CALL,
    COPY,
    IF_NOT_ROWS,
    KERNEL,
    LEFT,
    LOOKUP,
    MULTIPLY,
    MULTIPLY_EACH,
    NONE,
    RIGHT,
    SUM,
    TRANSPOSED,
    UNLESS_FOLLOWED,
    UNUSED,
)
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
        step = steps[at]
        code, width, k, n, flags = step["code"], step["entries"], step["k"], step["n"], step["flags"]
        x, w, out = step["x"], step["w"], step["out"]  # the first slot, of steps that have none of these
        source, weight = addresses[x] + BYTES * step["x_column"], addresses[w] + BYTES * step["w_column"]
        target = addresses[out] + BYTES * step["out_column"]
        if code == MULTIPLY:
            multiply(
                gpu, m, n, k, source, strides[x], weight, step["distance"], flags & TRANSPOSED, flags & ADD,
                target, strides[out],
            )  # fmt: skip
        elif code == KERNEL:
            values = np.empty(1 + given_words(step), np.int64)
            values[0] = m
            fill(values[1:], step, places, addresses, strides, lists, payload, payload_stride)
            if step["lanes"] > 0:
                groups(gpu, kernels[step["kernel"]], m * step["groups"], step["lanes"], values)
            else:
                entries(gpu, kernels[step["kernel"]], m, width, values)
        elif code == CALL:
            number, integer = step["places"], step["integer"]
            values = np.empty(2 + 3 * number, np.int64)
            values[0], values[1] = m, payload + BYTES * integer * payload_stride if integer >= 0 else 0
            for place in range(number):
                position = places[step["place"] + place]
                slot = position["slot"]
                values[2 + 3 * place] = addresses[slot] + BYTES * position["column"]
                values[3 + 3 * place] = strides[slot]
                values[4 + 3 * place] = lists[slot]
            by_groups(gpu, kernels[step["kernel"]], m * step["groups"], step["lanes"], values)
        elif code == COPY:
            move(moves, 0, source, strides[x], 0, 0, m, target, strides[out], width)
            gather(gpu, moves, 1)
        elif code == LOOKUP:
            integer = step["integer"]
            if integer >= 0:
                listed = payload + BYTES * integer * payload_stride
                move(moves, 0, weight, width, listed, 0, m, target, strides[out], width)
            else:
                move(moves, 0, weight + BYTES * width * (-1 - integer), 0, 0, 0, m, target, strides[out], width)
            gather(gpu, moves, 1)
        elif code == MULTIPLY_EACH:
            rows, turned = step["m"], flags & TRANSPOSED
            distance = step["distance"]
            multiply_each(
                gpu, m, rows, n, k,
                source, strides[x], distance if flags & LEFT else k, turned if flags & LEFT else 0,
                weight, strides[w], distance if flags & RIGHT else n, turned if flags & RIGHT else 0,
                target, strides[out],
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
    addresses, strides, lists = np.empty((3, most_slots(programs.extents)), np.int64)
    moves = np.empty((len(segments) + len(plan.operands) + MOVES, MOVE), np.int64)
    for batch in range(first, stop):
        one = plan.batches[batch]
        kind, row, n, offsets = one["type"], one["row"], one["n"], one["offsets"]
        operands = plan.operands[one["operand"] :]
        program = programs.program_of[kind]
        if program == ADD_ROWS:
            if memory.windows[operands[0]["window"]]["width"] == 0:
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
        extent = programs.extents[program]
        slots, arguments = extent["slots"], extent["arguments"]
        operands = operands[: extent["arguments_end"] - arguments]
        if not all_contiguous(operands, segments, memory.windows):
            return batch
        out, out_stride, out_width = result_rows(kind, row, memory)
        result, result_stride = computed_rows(memory.kept[kind], n, out, out_stride)
        block = block_rows(n, extent["calls"])
        for begin in range(0, n, block):
            m = min(block, n - begin)
            place_slots(
                programs.slots[slots : extent["slots_end"]], addresses, strides, scratch,
                result + BYTES * begin * result_stride, result_stride, programs.addresses[extent["addresses"] :], m,
            )  # fmt: skip
            lists[: extent["slots_end"] - slots] = 0
            count = 0
            for number in range(len(operands)):
                argument = programs.arguments[arguments + number]
                slot, entries, moved = argument["slot"], argument["entries"], argument["move"]
                if moved == UNUSED:
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
                    in_place = moved == UNLESS_FOLLOWED
                else:
                    in_place = moved != ALWAYS and (moved != IF_NOT_ROWS or stride >= entries)
                if in_place:
                    addresses[slot], strides[slot], lists[slot] = source, stride, listed
                else:
                    count = move(moves, count, source, stride, listed, 0, m, target, to, entries)
            gather(gpu, moves, count)
            enqueue_steps(
                gpu, programs.steps, extent["steps"], extent["steps_end"], programs.places[extent["places"] :],
                programs.kernels[extent["kernels"] :],
                addresses, strides, lists, indices + BYTES * (one["integers"] + begin), n, m,
            )  # fmt: skip
        if result != out:
            move(moves, 0, result, result_stride, 0, 0, n, out, out_stride, out_width)
            gather(gpu, moves, 1)
    return stop
