"""The interpreter of compiled programs: batch after batch without coming back to Python."""

from __future__ import annotations

import numpy as np

from edbatch.compiled import compiled
from edbatch.kernels.gather import copy_rows, gather_rows, gather_rows_to
from edbatch.kernels.pointers import call_kernel, int64_address
from edbatch.kernels.products import multiply, multiply_each
from edbatch.kernels.program import ADD, ADD_ROWS, DIVIDE, LEFT, MEAN, RIGHT, SUM, TRANSPOSED, Move, Step
from edbatch.kernels.segment_sums import add_listed, add_row, divide_rows, list_rows, sum_lists
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


@compiled(small=True, error_model="numpy")
def run_steps(
    steps: np.ndarray,
    first: int,
    stop: int,
    places: np.ndarray,
    kernels: np.ndarray,
    addresses: np.ndarray,
    strides: np.ndarray,
    lists: np.ndarray,
    payload: np.ndarray,
    payload_begin: int,
    payload_stride: int,
    m: int,
    sgemm: int,
) -> int:
    """Run steps on a block of m calls, up to the first that is left to the caller.

    Args:
        steps, first, stop: rows of a table of steps (see `Step`).
        places: [., 2] slot and column, of fused kernels.
        kernels: addresses of kernels.
        addresses, strides: per slot, of this block.
        lists: per slot, the address of the list of its rows; 0: the calls' rows follow one another.
        payload, payload_begin, payload_stride: the block's k-th integers begin at payload_begin + k * payload_stride.

    Returns:
        The step to go on with; `stop` at the end.
    """
    for at in range(first, stop):
        kind, a, b, c, d, e, f, g, h, i, j, k = steps[at]
        if kind == _MULTIPLY:
            multiply(
                sgemm, m, e, d, addresses[a] + BYTES * b, strides[a], addresses[c], f, g & TRANSPOSED, g & ADD,
                addresses[h] + BYTES * i, strides[h],
            )  # fmt: skip
        elif kind == _KERNEL:
            given, kept = np.empty(given_words(d, e), np.int64), np.empty(f * b + 1, np.float32)
            fill(given, b, d, places[c : c + d + e], addresses, strides, lists)
            given[-1] = int64_address(kept)
            call_kernel(kernels[a], m, int64_address(given))
            given[0], kept[0] = 0, 0  # or they would be freed before the call: Numba does not know that it uses them
        elif kind == _COPY:
            copy_rows(m, addresses[a] + BYTES * b, strides[a], addresses[c] + BYTES * d, strides[c], e)
        elif kind == _LOOKUP:
            target = addresses[d] + BYTES * e
            if c >= 0:
                gather_rows(m, addresses[a], b, payload, payload_begin + c * payload_stride, target, strides[d], b)
            else:
                copy_rows(m, addresses[a] + BYTES * b * (-1 - c), 0, target, strides[d], b)
        elif kind == _MULTIPLY_EACH:
            turned = i & TRANSPOSED
            multiply_each(
                sgemm, m, e, g, f,
                addresses[a] + BYTES * b, strides[a], h if i & LEFT else f, turned if i & LEFT else 0,
                addresses[c] + BYTES * d, strides[c], h if i & RIGHT else g, turned if i & RIGHT else 0,
                addresses[j] + BYTES * k, strides[j],
            )  # fmt: skip
        else:
            return at
    return stop


@compiled(small=True, error_model="numpy")
def _gather_segments(
    operand: np.void, segments: np.ndarray, indices: np.ndarray, memory: Memory, begin: int, end: int, target: int,
    stride: int, width: int,
) -> None:  # fmt: skip
    """Rows `begin` to `end` of an operand that comes from several windows; positions in a segment ascend."""
    for at in range(operand["first"], operand["first"] + operand["segments"]):
        segment = segments[at]
        rows, positions = segment["rows"], segment["positions"]
        low, high = np.searchsorted(indices[positions : positions + segment["n"]], np.array([begin, end]))
        source, source_stride = window_rows(segment["window"], memory)
        gather_rows_to(
            high - low, source, source_stride, indices, rows + low, positions + low, target - BYTES * begin * stride,
            stride, width,
        )  # fmt: skip


@compiled(small=True, error_model="numpy")
def _sum_lists(
    operand: np.void, segments: np.ndarray, indices: np.ndarray, offsets: int, memory: Memory, n: int, out: int,
    stride: int, width: int, mean: bool,
) -> None:  # fmt: skip
    """Run a batch of sums, or means, over lists.

    Args:
        operand: its windows are contiguous.
        offsets: where the lists begin and end, in `indices`.
        out, stride, width: the rows of the result.
    """
    first, listed = operand["first"], np.empty(operand["n"], np.int64)  # where each row lies
    if operand["access"] == GATHER_MANY:
        for at in range(first, first + operand["segments"]):
            segment = segments[at]
            source, source_stride = window_rows(segment["window"], memory)
            list_rows(segment["n"], indices, segment["rows"], segment["positions"], source, source_stride, listed)
    else:
        source, source_stride = operand_rows(operand, 0, memory)
        rows = first if operand["access"] == GATHER else -1
        list_rows(operand["n"], indices, rows, -1, source, source_stride, listed)
    sum_lists(n, indices, offsets, listed, out, stride, width, mean)


@compiled(small=True, error_model="numpy")
def _add_to_operand(
    operand: np.void, indices: np.ndarray, positions: int, memory: Memory, source: int, stride: int, width: int,
    n: int,
) -> None:  # fmt: skip
    """Add n rows, one after the other, to the rows of an operand.

    Args:
        operand: not of several windows.
        positions: where the list of the rows begins in `indices`, counted from the first; negative: all in order.
        source, stride, width: the rows.
    """
    target, target_stride = operand_rows(operand, 0, memory)
    access = operand["access"]
    if access == SHARED:
        add_listed(n, indices, positions, source, stride, target, width)
        return
    for i in range(n):
        row = i if positions < 0 else indices[positions + i]
        at = indices[operand["first"] + i] if access == GATHER else i
        add_row(source + BYTES * row * stride, target + BYTES * at * target_stride, width)


@compiled(small=True, error_model="numpy")
def run_batches(first: int, stop: int, indices: np.ndarray, scratch: int, sgemm: int, *tables: np.ndarray) -> int:
    """Run the batches of a plan from `first` on, up to the first that has no program, or cannot be run here.

    Args:
        stop: the batch to stop before.
        indices: the plan's index buffer.
        scratch: address of a buffer that has room for a block of any program.
        tables: those of `Batches`, `Memory` and `Programs`.

    Returns:
        The batch to go on with.
    """
    plan, memory, programs = grouped(tables)
    segments = plan.segments
    addresses, strides, lists = np.empty((3, most_slots(programs.programs)), np.int64)
    for batch in range(first, stop):
        one = plan.batches[batch]
        kind, n, operands = one["type"], one["n"], plan.operands[one["operand"] :]
        program = programs.program_of[kind]
        if program in (SUM, MEAN, ADD_ROWS, DIVIDE):
            if not all_contiguous(operands[:1], segments, memory.windows):
                return batch
            offsets = one["offsets"]
            out, stride, width = result_rows(kind, one["row"], memory)
            if program in (SUM, MEAN):
                _sum_lists(
                    operands[0], segments, indices, offsets, memory, n, out, stride, width, program == MEAN
                )  # fmt: skip
            elif program == DIVIDE:
                source, source_stride = operand_rows(operands[0], 0, memory)
                divide_rows(n, indices, offsets, source, source_stride, out, stride, width)
            else:
                _add_to_operand(operands[0], indices, offsets, memory, out, stride, width, n)
            continue
        if program < 0:
            return batch
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
        out, out_stride, out_width = result_rows(kind, one["row"], memory)
        result, result_stride = computed_rows(memory.kept[kind], n, out, out_stride)
        block = block_rows(n, rows)
        for begin in range(0, n, block):
            m = min(block, n - begin)
            place_slots(
                programs.slots[slot_begin:slot_end], addresses, strides, scratch,
                result + BYTES * begin * result_stride, result_stride, programs.addresses[fixed:], m,
            )  # fmt: skip
            lists[: slot_end - slot_begin] = 0
            for number in range(len(operands)):
                slot, entries, move = programs.arguments[argument_begin + number]
                if move == _UNUSED:
                    continue
                operand = operands[number]
                access, target, to = operand["access"], addresses[slot], strides[slot]
                if access == GATHER_MANY:
                    _gather_segments(operand, segments, indices, memory, begin, begin + m, target, to, entries)
                    continue
                source, stride = operand_rows(operand, begin, memory)
                if access == GATHER and move == _UNLESS_FOLLOWED:
                    addresses[slot], strides[slot] = source, stride
                    first = int(operand["first"]) + begin
                    lists[slot] = int64_address(indices) + indices.itemsize * first
                elif access == GATHER:
                    gather_rows(m, source, stride, indices, operand["first"] + begin, target, to, entries)
                elif move == _ALWAYS or (move == _IF_NOT_ROWS and stride < entries):
                    copy_rows(m, source, stride, target, to, entries)
                else:
                    addresses[slot], strides[slot] = source, stride
            run_steps(
                programs.steps, step_begin, step_end, programs.places[place:], programs.kernels[kernel:], addresses,
                strides, lists, indices, one["integers"] + begin, n, m, sgemm,
            )  # fmt: skip
        if result != out:
            copy_rows(n, result, result_stride, out, out_stride, out_width)
    return stop
