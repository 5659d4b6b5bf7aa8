"""Kernels of lists, and additions of rows to operands, as the interpreter runs them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.kernels.cpu.pointers import call_kernel, int64_address
from edbatch.kernels.tables import PLACE, Memory, Rows, operand_rows, placed, window_rows
from edbatch.memory.plan.format import GATHER, SHARED, STRIDED


class Sources(NamedTuple):
    """What the operands of a plan's batches are found in.

    Attributes:
        operands, segments: of the plan.
        indices: its index buffer.
        memory: where values are.
    """

    operands: np.ndarray
    segments: np.ndarray
    indices: np.ndarray
    memory: Memory


class Listed(NamedTuple):
    """Rows, and the address of the list of those that are meant, counted from the first; 0: all in order."""

    rows: Rows
    list: int


@compiled(small=True, error_model="numpy")
def at_index(indices: np.ndarray, begin: int) -> int:
    """The address of a list in the index buffer; 0 for a negative one, which is none."""
    return int64_address(indices) + indices.itemsize * int(begin) if begin >= 0 else 0


@compiled(small=True, error_model="numpy")
def _list_rows(operand: np.void, sources: Sources, listed: np.ndarray) -> None:
    """Fill in the address of each row of an operand that is gathered."""
    indices, first = sources.indices, operand["first"]
    if operand["access"] == GATHER:
        source = window_rows(operand["window"], sources.memory)
        for k in range(operand["n"]):
            listed[k] = source.address + indices[first + k] * source.stride
        return
    for at in range(first, first + operand["segments"]):
        segment = sources.segments[at]
        source = window_rows(segment["window"], sources.memory)
        rows, positions = segment["rows"], segment["positions"]
        for k in range(segment["n"]):
            listed[indices[positions + k]] = source.address + indices[rows + k] * source.stride


@compiled(small=True, error_model="numpy")
def read_scattered(memory: Memory, window: int, n: int, there: Listed, here: Listed) -> None:
    """Copy n rows of a window whose entries do not lie side by side to rows where they do."""
    kernel = memory.scattered[memory.windows[window]["scattered"]]
    given = memory.words[kernel["read_given"] : kernel["read_end"]].copy()
    placed(given, kernel["axes"], there.rows, there.list)
    placed(given, kernel["axes"] + PLACE, here.rows, here.list)
    call_kernel(kernel["read"], n, int64_address(given))
    given[0] = 0  # or it would be freed before the call


@compiled(small=True, error_model="numpy")
def compute_lists(task: np.void, one: np.void, sources: Sources, out: Rows, copied: Rows) -> None:
    """A batch of a kernel of lists.

    Args:
        copied: where the rows of the first operand have been copied to; at address 0: they have not been.
    """
    some, first = task["operands"], one["operand"]
    total = 0
    for at in range(some):
        total += sources.operands[first + at]["n"]
    listed, begin = np.empty(total, np.int64), 0
    offsets = sources.indices[one["offsets"] : one["offsets"] + one["n"] + 1].astype(np.int64)
    given = np.zeros(2 + 3 * (some + 1) + 1, np.int64)
    given[0], given[1] = out.width // task["itemsize"], int64_address(offsets)
    for at in range(some):
        operand, place = sources.operands[first + at], 2 + 3 * at
        if at == 0 and copied.address != 0:
            placed(given, place, copied, 0)
            continue
        if operand["access"] <= STRIDED:
            rows = operand_rows(operand, 0, sources.memory)
            given[place], given[place + 1] = rows.address, rows.stride
            continue
        end = begin + int(operand["n"])  # where this is interpreted, an int32 would make the address one
        _list_rows(operand, sources, listed[begin:end])
        given[place + 1], given[place + 2] = 1, int64_address(listed) + listed.itemsize * begin
        begin = end
    given[2 + 3 * some], given[3 + 3 * some] = out.address, out.stride
    call_kernel(task["kernel"], one["n"], int64_address(given))
    given[0] = offsets[0] + len(listed)  # or they would be freed before the call


@compiled(small=True, error_model="numpy")
def add_to_operand(task: np.void, one: np.void, sources: Sources, rows: Rows) -> None:
    """Add rows, in the order of the list of them if there is one, to the rows of an operand of one window."""
    operand, indices, memory = sources.operands[one["operand"]], sources.indices, sources.memory
    target, source = operand_rows(operand, 0, memory), Listed(rows, at_index(indices, one["offsets"]))
    scattered = memory.windows[operand["window"]]["scattered"]
    offsets = np.array([0, one["n"]], np.int32)
    if operand["access"] == SHARED:
        kernel, n, axes = task["to_one"], 1, 1
        given = np.zeros(2 + 2 * PLACE + 1, np.int64)
        given[0] = rows.width // task["itemsize"]
        if scattered >= 0:
            of = memory.scattered[scattered]
            kernel, axes = of["add_lists"], of["axes"]
            given = memory.words[of["lists_given"] : of["lists_end"]].copy()
        given[axes] = int64_address(offsets)
        placed(given, axes + 1, rows, source.list)
        placed(given, axes + 1 + PLACE, Rows(target.address, 0, 0), 0)
    else:
        kernel, n, axes = task["kernel"], int(one["n"]), 1
        given = np.zeros(1 + 2 * PLACE + 1, np.int64)
        given[0] = rows.width // task["itemsize"]
        if scattered >= 0:
            of = memory.scattered[scattered]
            kernel, axes = of["add"], of["axes"]
            given = memory.words[of["add_given"] : of["add_end"]].copy()
        placed(given, axes, rows, source.list)
        placed(given, axes + PLACE, target, at_index(indices, operand["first"]) if operand["access"] == GATHER else 0)
    call_kernel(kernel, n, int64_address(given))
    given[0], offsets[0] = 0, 0  # or they would be freed before the call
