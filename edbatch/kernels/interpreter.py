"""The interpreter of compiled programs: batch after batch without coming back to Python."""

from __future__ import annotations

import numpy as np
from numba import njit

from edbatch.kernels.gather import copy_rows, gather_rows, gather_rows_to
from edbatch.kernels.pointers import call_kernel, int64_address
from edbatch.kernels.products import multiply, multiply_each
from edbatch.kernels.program import ADD, ADD_ROWS, LEFT, RIGHT, SUM, TRANSPOSED, Move, Slot, Step
from edbatch.kernels.segment_sums import add_row, add_some, fill_rows, sum_even, sum_gathered
from edbatch.kernels.softmax import softmax_rows

# Numba takes plain integers for constants.
_ARGUMENT, _SCRATCH, _RESULT, _FIXED = map(int, Slot)
_UNUSED, _IF_NOT_ROWS, _ALWAYS = int(Move.UNUSED), int(Move.IF_NOT_ROWS), int(Move.ALWAYS)
_MULTIPLY, _FUSED, _COPY, _LOOKUP, _SOFTMAX, _MULTIPLY_EACH, _CALL, _PYTHON = map(int, Step)
_GATHER, _GATHER_MANY = 3, 4  # memory.plan.Access

BYTES = 4  # of an entry


@njit(cache=True, error_model="numpy")
def run_steps(
    steps: np.ndarray,
    first: int,
    stop: int,
    places: np.ndarray,
    kernels: np.ndarray,
    addresses: np.ndarray,
    strides: np.ndarray,
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
        kernels: addresses of fused kernels.
        addresses, strides: per slot, of this block.
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
        elif kind == _FUSED:
            given = np.empty(2 * d, np.int64)
            for place in range(d):
                slot = places[c + place, 0]
                given[2 * place] = addresses[slot] + BYTES * places[c + place, 1]
                given[2 * place + 1] = strides[slot]
            call_kernel(kernels[a], m, b, int64_address(given))
            given[0] = 0  # or it would be freed before the call: Numba does not know that it reads it
        elif kind == _COPY:
            copy_rows(m, addresses[a] + BYTES * b, strides[a], addresses[c] + BYTES * d, strides[c], e)
        elif kind == _LOOKUP:
            target = addresses[d] + BYTES * e
            if c >= 0:
                gather_rows(m, addresses[a], b, payload, payload_begin + c * payload_stride, target, strides[d], b)
            else:
                copy_rows(m, addresses[a] + BYTES * b * (-1 - c), 0, target, strides[d], b)
        elif kind == _SOFTMAX:
            softmax_rows(m, addresses[a] + BYTES * b, strides[a], addresses[c] + BYTES * d, strides[c], e, f)
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


@njit(cache=True, error_model="numpy")
def place_slots(
    slots: np.ndarray,
    addresses: np.ndarray,
    strides: np.ndarray,
    scratch: int,
    result: int,
    result_stride: int,
    fixed: np.ndarray,
    m: int,
) -> None:
    """Where the slots lie in a block of m calls; arguments: where they are moved to if they are."""
    for at in range(len(slots)):
        kind, place, column, stride = slots[at]
        if kind <= _SCRATCH:
            addresses[at] = scratch + BYTES * (m * place + column)
            strides[at] = stride
        elif kind == _RESULT:
            addresses[at] = result + BYTES * column
            strides[at] = result_stride
        else:
            addresses[at] = fixed[place]
            strides[at] = 0


@njit(cache=True, error_model="numpy")
def _gather_segments(
    segments: np.ndarray,
    first: int,
    count: int,
    windows: np.ndarray,
    arenas: np.ndarray,
    indices: np.ndarray,
    begin: int,
    end: int,
    target: int,
    stride: int,
    width: int,
) -> None:
    """Rows `begin` to `end` of an operand that comes from several windows; positions in a segment ascend."""
    for at in range(first, first + count):
        window, rows, positions, n = segments[at]
        lo, hi = np.searchsorted(indices[positions : positions + n], np.array([begin, end]))
        arena = windows[window, 0]
        source = arenas[arena, 0] + BYTES * windows[window, 1]
        gather_rows_to(
            hi - lo, source, arenas[arena, 1], indices, rows + lo, positions + lo,
            target - BYTES * begin * stride, stride, width,
        )  # fmt: skip


@njit(cache=True, error_model="numpy")
def sum_batch(
    operand: np.ndarray,
    segments: np.ndarray,
    indices: np.ndarray,
    offsets: int,
    windows: np.ndarray,
    arenas: np.ndarray,
    n: int,
    out: int,
    stride: int,
    width: int,
) -> None:
    """Run a batch of sums over lists.

    Args:
        operand: its row of `Plan.operands`; its windows are contiguous.
        offsets: where the lists begin and end, in `indices`.
        out, stride, width: the rows of the result.
    """
    access, window, start, distance, total = operand
    if access == _GATHER_MANY:
        owners = np.empty(total, np.int32)
        for i in range(n):
            owners[indices[offsets + i] : indices[offsets + i + 1]] = i
        fill_rows(n, out, stride, width)
        for at in range(start, start + distance):
            window, rows, positions, count = segments[at]
            arena = windows[window, 0]
            source = arenas[arena, 0] + BYTES * windows[window, 1]
            add_some(count, indices, rows, positions, owners, source, arenas[arena, 1], out, stride, width)
        return
    arena = windows[window, 0]
    source, row = arenas[arena, 0] + BYTES * windows[window, 1], arenas[arena, 1]
    if access == _GATHER:
        sum_gathered(n, indices, offsets, start, source, row, out, stride, width)
    else:
        distance = 1 if access == 0 else 0 if access == 1 else distance
        sum_even(n, indices, offsets, source + BYTES * start * row, distance * row, out, stride, width)


@njit(cache=True, error_model="numpy")
def add_to_operand(
    operand: np.ndarray,
    indices: np.ndarray,
    positions: int,
    windows: np.ndarray,
    arenas: np.ndarray,
    window: int,
    first: int,
    n: int,
) -> None:
    """Add n rows of a window, one after the other, to the rows of an operand.

    Args:
        operand: its row of `Plan.operands`; not of several windows.
        positions: where the list of the rows begins in `indices`, counted from the first; negative: all in order.
        window, first: the rows.
    """
    access, to, start, distance, _ = operand
    target = arenas[windows[to, 0], 0] + BYTES * windows[to, 1]
    target_stride = arenas[windows[to, 0], 1]
    arena, column, width = windows[window]
    stride = arenas[arena, 1]
    source = arenas[arena, 0] + BYTES * (column + first * stride)
    distance = 1 if access == 0 else 0 if access == 1 else distance
    for i in range(n):
        row = i if positions < 0 else indices[positions + i]
        at = indices[start + i] if access == _GATHER else start + i * distance
        add_row(source + BYTES * row * stride, target + BYTES * at * target_stride, width)


@njit(cache=True, error_model="numpy")
def all_contiguous(operand: np.ndarray, segments: np.ndarray, windows: np.ndarray) -> bool:
    """Whether an operand's rows can be read by address."""
    access, window, start, distance, _ = operand
    if access != _GATHER_MANY:
        return bool(windows[window, 2] != 0)
    return bool((windows[segments[start : start + distance, 0], 2] != 0).all())


@njit(cache=True, error_model="numpy")
def result_rows(window: int, row: int, windows: np.ndarray, arenas: np.ndarray) -> tuple[int, int, int]:
    """Of rows of a contiguous window from `row` on: address, distance, entries."""
    arena, column, width = windows[window]
    stride = arenas[arena, 1]
    return arenas[arena, 0] + BYTES * (column + row * stride), stride, width


@njit(cache=True, error_model="numpy")
def computed_rows(kept: np.ndarray, n: int, out: int, stride: int) -> tuple[int, int]:
    """Address and distance of the rows where a program computes n calls: at `out`, or where it keeps what it saves.

    Args:
        kept: the row of its type, see `run_batches`; counts the calls.
    """
    if kept[0] == 0:
        return out, stride
    first = kept[0] + BYTES * kept[2] * kept[1]
    kept[2] += n
    return first, kept[1]


@njit(cache=True, error_model="numpy")
def run_batches(
    first: int,
    stop: int,
    batches: np.ndarray,
    operands: np.ndarray,
    segments: np.ndarray,
    indices: np.ndarray,
    windows: np.ndarray,
    arenas: np.ndarray,
    results: np.ndarray,
    kept: np.ndarray,
    program_of: np.ndarray,
    programs: np.ndarray,
    slots: np.ndarray,
    arguments: np.ndarray,
    steps: np.ndarray,
    places: np.ndarray,
    fixed: np.ndarray,
    kernels: np.ndarray,
    scratch: int,
    sgemm: int,
) -> int:
    """Run the batches of a plan from `first` on, up to the first that has no program, or cannot be run here.

    Args:
        stop: the batch to stop before.
        batches, operands, segments, indices: see `memory.plan.Plan`.
        windows: [., 3] arena, column, entries of a row as seen (0: not contiguous).
        arenas: [., 2] address, entries of a row.
        results: per type, the window of its results.
        kept: per type [., 3], where its program keeps its results together with what is saved: address of the first
            row (0: nothing is saved, results go to their arena right away), entries of a row, rows there are so far.
        program_of: per type its program, or NONE, SUM, ADD_ROWS.
        programs: [., 10] begin and end of a program's part of `slots`, `arguments`, `steps`; where its `fixed` begin;
            the calls of a block at most; where its `kernels` and `places` begin.
        fixed: addresses of parameters and constants.
        scratch: address of a buffer that has room for a block of any program.

    Returns:
        The batch to go on with.
    """
    most = 0
    for program in range(len(programs)):
        most = max(most, programs[program, 1] - programs[program, 0])
    addresses = np.empty(most, np.int64)
    strides = np.empty(most, np.int64)
    for batch in range(first, stop):
        kind, row, n, operand, payload, offsets = batches[batch]
        program = program_of[kind]
        if program == SUM:
            if not all_contiguous(operands[operand], segments, windows):
                return batch
            out, stride, width = result_rows(results[kind], row, windows, arenas)
            sum_batch(operands[operand], segments, indices, offsets, windows, arenas, n, out, stride, width)
            continue
        if program == ADD_ROWS:
            if windows[operands[operand, 1], 2] == 0:
                return batch
            add_to_operand(operands[operand], indices, offsets, windows, arenas, results[kind], row, n)
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
            fixed_begin,
            rows,
            kernel,
            place,
        ) = programs[program]
        for number in range(argument_begin, argument_end):
            if not all_contiguous(operands[operand + number - argument_begin], segments, windows):
                return batch
        out, out_stride, out_width = result_rows(results[kind], row, windows, arenas)
        result, result_stride = computed_rows(kept[kind], n, out, out_stride)
        block = block_rows(n, rows)
        for begin in range(0, n, block):
            m = min(block, n - begin)
            place_slots(
                slots[slot_begin:slot_end], addresses, strides, scratch,
                result + BYTES * begin * result_stride, result_stride, fixed[fixed_begin:], m,
            )  # fmt: skip
            for number in range(argument_begin, argument_end):
                slot, entries, move = arguments[number]
                if move == _UNUSED:
                    continue
                access, window, start, distance, _ = operands[operand + number - argument_begin]
                if access == _GATHER_MANY:
                    _gather_segments(
                        segments, start, distance, windows, arenas, indices, begin, begin + m,
                        addresses[slot], strides[slot], entries,
                    )  # fmt: skip
                    continue
                arena = windows[window, 0]
                source, stride = arenas[arena, 0] + BYTES * windows[window, 1], arenas[arena, 1]
                if access == _GATHER:
                    gather_rows(m, source, stride, indices, start + begin, addresses[slot], strides[slot], entries)
                    continue
                if access == 0:
                    distance = 1
                elif access == 1:
                    distance = 0
                source += BYTES * (start + begin * distance) * stride
                stride *= distance
                if move == _ALWAYS or (move == _IF_NOT_ROWS and stride < entries):
                    copy_rows(m, source, stride, addresses[slot], strides[slot], entries)
                else:
                    addresses[slot] = source
                    strides[slot] = stride
            run_steps(
                steps, step_begin, step_end, places[place:], kernels[kernel:], addresses, strides,
                indices, payload + begin, n, m, sgemm,
            )  # fmt: skip
        if result != out:
            copy_rows(n, result, result_stride, out, out_stride, out_width)
    return stop


@njit(cache=True)
def block_rows(n: int, most: int) -> int:
    """How many calls to compute at a time: n in parts of equal size, none of more than `most`."""
    return -(-n // -(-n // most))
