"""The interpreter of compiled programs: batch after batch without coming back to Python."""

from __future__ import annotations

import numpy as np

from edbatch.compiled import compiled
from edbatch.kernels.gather import copy_rows, gather_rows, gather_rows_to
from edbatch.kernels.pointers import call_kernel, int64_address
from edbatch.kernels.products import multiply, multiply_each
from edbatch.kernels.program import (
    ADD,
    ADD_ROWS,
    ALWAYS,
    COPY,
    DIVIDE,
    IF_NOT_ROWS,
    KERNEL,
    LEFT,
    LOOKUP,
    MEAN,
    MULTIPLY,
    MULTIPLY_EACH,
    RIGHT,
    SUM,
    TRANSPOSED,
    UNLESS_FOLLOWED,
    UNUSED,
)
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
        steps, first, stop: records of a table of steps.
        places: of kernels, records `Position`.
        kernels: addresses of kernels.
        addresses, strides: per slot, of this block.
        lists: per slot, the address of the list of its rows; 0: the calls' rows follow one another.
        payload, payload_begin, payload_stride: the block's k-th integers begin at payload_begin + k * payload_stride.

    Returns:
        The step to go on with; `stop` at the end.
    """
    for at in range(first, stop):
        step = steps[at]
        code, entries, k, n, flags = step["code"], step["entries"], step["k"], step["n"], step["flags"]
        x, w, out = step["x"], step["w"], step["out"]  # the first slot, of steps that have none of these
        source, weight = addresses[x] + BYTES * step["x_column"], addresses[w] + BYTES * step["w_column"]
        target = addresses[out] + BYTES * step["out_column"]
        if code == MULTIPLY:
            multiply(
                sgemm, m, n, k, source, strides[x], weight, step["distance"], flags & TRANSPOSED, flags & ADD,
                target, strides[out],
            )  # fmt: skip
        elif code == KERNEL:
            given = np.empty(given_words(step), np.int64)
            kept = np.empty(step["scratch"] * entries + 1, np.float32)
            listed = int64_address(payload) + payload.itemsize * int(payload_begin)
            fill(given, step, places, addresses, strides, lists, listed, payload_stride)
            given[-1] = int64_address(kept)
            call_kernel(kernels[step["kernel"]], m, int64_address(given))
            given[0], kept[0] = 0, 0  # or they would be freed before the call: Numba does not know that it uses them
        elif code == COPY:
            copy_rows(m, source, strides[x], target, strides[out], entries)
        elif code == LOOKUP:
            integer = step["integer"]
            if integer >= 0:
                listed = payload_begin + integer * payload_stride
                gather_rows(m, weight, entries, payload, listed, target, strides[out], entries)
            else:
                copy_rows(m, weight + BYTES * entries * (-1 - integer), 0, target, strides[out], entries)
        elif code == MULTIPLY_EACH:
            rows, turned = step["m"], flags & TRANSPOSED
            distance = step["distance"]
            multiply_each(
                sgemm, m, rows, n, k,
                source, strides[x], distance if flags & LEFT else k, turned if flags & LEFT else 0,
                weight, strides[w], distance if flags & RIGHT else n, turned if flags & RIGHT else 0,
                target, strides[out],
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
    addresses, strides, lists = np.empty((3, most_slots(programs.extents)), np.int64)
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
        extent = programs.extents[program]
        slots, arguments = extent["slots"], extent["arguments"]
        operands = operands[: extent["arguments_end"] - arguments]
        if not all_contiguous(operands, segments, memory.windows):
            return batch
        out, out_stride, out_width = result_rows(kind, one["row"], memory)
        result, result_stride = computed_rows(memory.kept[kind], n, out, out_stride)
        block = block_rows(n, extent["calls"])
        for begin in range(0, n, block):
            m = min(block, n - begin)
            place_slots(
                programs.slots[slots : extent["slots_end"]], addresses, strides, scratch,
                result + BYTES * begin * result_stride, result_stride, programs.addresses[extent["addresses"] :], m,
            )  # fmt: skip
            lists[: extent["slots_end"] - slots] = 0
            for number in range(len(operands)):
                argument = programs.arguments[arguments + number]
                slot, entries, move = argument["slot"], argument["entries"], argument["move"]
                if move == UNUSED:
                    continue
                operand = operands[number]
                access, target, to = operand["access"], addresses[slot], strides[slot]
                if access == GATHER_MANY:
                    _gather_segments(operand, segments, indices, memory, begin, begin + m, target, to, entries)
                    continue
                source, stride = operand_rows(operand, begin, memory)
                if access == GATHER and move == UNLESS_FOLLOWED:
                    addresses[slot], strides[slot] = source, stride
                    first = int(operand["first"]) + begin
                    lists[slot] = int64_address(indices) + indices.itemsize * first
                elif access == GATHER:
                    gather_rows(m, source, stride, indices, operand["first"] + begin, target, to, entries)
                elif move == ALWAYS or (move == IF_NOT_ROWS and stride < entries):
                    copy_rows(m, source, stride, target, to, entries)
                else:
                    addresses[slot], strides[slot] = source, stride
            run_steps(
                programs.steps, extent["steps"], extent["steps_end"], programs.places[extent["places"] :],
                programs.kernels[extent["kernels"] :], addresses,
                strides, lists, indices, one["integers"] + begin, n, m, sgemm,
            )  # fmt: skip
        if result != out:
            copy_rows(n, result, result_stride, out, out_stride, out_width)
    return stop
