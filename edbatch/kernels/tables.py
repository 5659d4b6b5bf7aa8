"""The tables that the compiled loops of every device read, and where the rows of operands and results lie in memory.

Addresses are those of the device. Distances and widths of rows are in bytes; what is in entries says so.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edbatch.compiling.array_table import INT32, INT64, reader
from edbatch.compiling.compiled import compiled
from edbatch.kernels.program import ARGUMENT_OF, DISPATCH, POSITION, PROGRAM_RANGE, RESULT, SAVED, SCRATCH, SLOT, STEP
from edbatch.memory.plan.addresses import COLUMNS, ROWS, SAVING, SCATTERED
from edbatch.memory.plan.format import BATCH, GATHER, OPERAND, SEGMENT, Plan

INTEGER_BYTES = 4  # of an integer of a call
PLACE = 3  # words that a kernel is given of a place


class Memory(NamedTuple):
    """Where values are.

    Attributes:
        windows: of records `Columns`.
        arenas: of records `Rows`.
        results: per type, the window of its results; of ADD_ROWS, that of the rows that are added.
        saving: per type, a record `SavingRows`: where its program saves values.
        scattered: of records `Scattered`.
        words: that kernels for these are given.
    """

    windows: np.ndarray
    arenas: np.ndarray
    results: np.ndarray
    saving: np.ndarray
    scattered: np.ndarray
    words: np.ndarray


class Programs(NamedTuple):
    """Programs one after the other (see `kernels.program`).

    Attributes:
        tasks: per type, a record `Dispatch`.
        extents: of records `ProgramRange`: which part of the other tables is a program's.
        slots, arguments, steps, places: of all programs, of records `Slot`, `Argument`, `Step`, `Position`.
        kernels: addresses, or handles, of generated kernels.
        addresses: of parameters and constants.
    """

    tasks: np.ndarray
    extents: np.ndarray
    slots: np.ndarray
    arguments: np.ndarray
    steps: np.ndarray
    places: np.ndarray
    kernels: np.ndarray
    addresses: np.ndarray


class Rows(NamedTuple):
    """Rows in memory.

    Attributes:
        address: of the first.
        stride: from one to the next.
        width: of one.
    """

    address: int
    stride: int
    width: int


class Listed(NamedTuple):
    """Rows, and the address of the list of those that are meant, counted from the first; 0: all in order."""

    rows: Rows
    list: int


class Sources(NamedTuple):
    """What the operands of a plan's batches are found in.

    Attributes:
        operands, segments: of the plan.
        host, indices: its index buffer on the host, and its address on the device.
        integers: the address of those that its batches read.
        memory: where values are.
        moves: room for those of any batch, on devices that note them.
    """

    operands: np.ndarray
    segments: np.ndarray
    host: np.ndarray
    indices: int
    integers: int
    memory: Memory
    moves: np.ndarray


class Sizes(NamedTuple):
    """Of a product: [m, k] times [k, n]."""

    m: int
    n: int
    k: int


class Matrix(NamedTuple):
    """A matrix, row by row.

    Attributes:
        address: of the first entry.
        distance: entries between rows as stored.
        turned: not 0: it is stored by columns, as the matrix whose rows these are.
    """

    address: int
    distance: int
    turned: int


class Matrices(NamedTuple):
    """A matrix for each call.

    Attributes:
        stride: bytes from one to the next; 0: one for all.
        first: that of the first call.
    """

    stride: int
    first: Matrix


class Slots(NamedTuple):
    """Where the values of a block of calls are, per slot.

    Attributes:
        addresses: of the first row.
        strides: from row to row.
        lists: the address of the list of its rows; 0: the calls' rows follow one another.
    """

    addresses: np.ndarray
    strides: np.ndarray
    lists: np.ndarray


class Integers(NamedTuple):
    """The integers of a block of calls: the k-th of all calls begin at k * stride.

    Attributes:
        first: the address of the first.
        offsets: the address of the offsets of the calls' lists, if they read lists; else 0.
        elements: of all these lists.
        longest: of these lists, how many elements it has.
    """

    first: int
    stride: int
    offsets: int = 0
    elements: int = 0
    longest: int = 0


# The tables of the directory of a plan, of a memory, and of programs.
plan_in = reader(Plan, BATCH, OPERAND, SEGMENT, INT32, INT32)
memory_in = reader(Memory, COLUMNS, ROWS, INT32, SAVING, SCATTERED, INT64)
programs_in = reader(Programs, DISPATCH, PROGRAM_RANGE, SLOT, ARGUMENT_OF, STEP, POSITION, INT64, INT64)


@compiled(small=True, error_model="numpy")
def most_slots(extents: np.ndarray) -> int:
    """Of any program."""
    most = 1
    for program in range(len(extents)):
        most = max(most, extents[program]["slots_end"] - extents[program]["slots"])
    return int(most)


@compiled(small=True)
def placed(given: np.ndarray, at: int, place: Listed) -> None:
    """Write a place among what a kernel is given, from `at` on."""
    given[at], given[at + 1], given[at + 2] = place.rows.address, place.rows.stride, place.list


@compiled(small=True, error_model="numpy", inline="always")
def window_rows(window: int, memory: Memory) -> Rows:
    """The rows that a window shows; if their entries do not lie side by side, from their first entries on."""
    shown = memory.windows[window]
    arena = memory.arenas[shown["arena"]]
    return Rows(arena["address"] + shown["begin"], arena["stride"], shown["width"])


@compiled(small=True, error_model="numpy", inline="always")
def operand_rows(operand: np.void, begin: int, memory: Memory) -> Rows:
    """Where an operand's rows lie, of one window, from number `begin` on.

    Rows that are gathered are listed in the plan's indices; they count from the address.
    """
    rows = window_rows(operand["window"], memory)
    if operand["access"] == GATHER:
        return rows
    distance = operand["distance"]
    first = rows.address + (operand["first"] + begin * distance) * rows.stride
    return Rows(first, distance * rows.stride, rows.width)


@compiled(small=True, error_model="numpy", inline="always")
def result_rows(kind: int, row: int, memory: Memory) -> Rows:
    """Where the results of a type lie from `row` on."""
    rows = window_rows(memory.results[kind], memory)
    return Rows(rows.address + row * rows.stride, rows.stride, rows.width)


@compiled(small=True, error_model="numpy", inline="always")
def saved_rows(saving: np.void, n: int) -> Rows:
    """The rows where a program saves values of n calls.

    Args:
        saving: the record of its type; counts the calls.
    """
    if saving["address"] == 0:
        return Rows(0, 0, 0)
    first = saving["address"] + saving["n"] * saving["stride"]
    saving["n"] += n
    return Rows(first, saving["stride"], saving["stride"])


@compiled(small=True, error_model="numpy", inline="always")
def place_slots(
    programs: Programs, number: int, slots: Slots, scratch: int, result: Rows, saved: Rows, m: int, elements: int
) -> None:
    """Where the slots of a program lie in a block of m calls; arguments: where they are moved to if they are.

    Args:
        elements: of all lists of these calls.
    """
    extent = programs.extents[number]
    itemsize = extent["itemsize"]
    for at in range(extent["slots_end"] - extent["slots"]):
        slot = programs.slots[extent["slots"] + at]
        slots.lists[at] = 0
        if slot["storage"] == SCRATCH:
            slots.addresses[at] = scratch + itemsize * (m * slot["place"] + elements * slot["each"] + slot["column"])
            slots.strides[at] = itemsize * slot["stride"]
        elif slot["storage"] == RESULT:
            slots.addresses[at] = result.address + itemsize * slot["column"]
            slots.strides[at] = result.stride
        elif slot["storage"] == SAVED:
            slots.addresses[at] = saved.address + itemsize * slot["column"]
            slots.strides[at] = saved.stride
        else:
            slots.addresses[at] = programs.addresses[extent["addresses"] + slot["place"]]
            slots.strides[at] = 0


@compiled(small=True)
def given_from(memory: Memory, begin: int, end: int) -> np.ndarray:
    """Room for the number of rows, and then what a kernel for scattered rows is given."""
    given = np.empty(1 + end - begin, np.int64)
    given[1:] = memory.words[begin:end]
    return given


@compiled(small=True)
def adding(
    task: np.void, memory: Memory, window: int, n: int, source: Listed, target: Listed, offsets: int
) -> tuple[int, int, np.ndarray]:
    """What adds rows to n rows of a window, the target.

    Args:
        task: of `ADD_ROWS`.
        offsets: the address of the offsets of the lists of source rows that are added to one each; 0: each is to one.

    Returns:
        The kernel, entries of a row, and what it is given, behind the number of rows.
    """
    scattered, lists = memory.windows[window]["scattered"], int(offsets != 0)
    if scattered < 0:
        kernel, axes, entries = task["to_groups"] if lists else task["kernel"], 1, source.rows.width // task["itemsize"]
        given = np.zeros(2 + lists + 2 * PLACE, np.int64)
        given[1] = entries
    else:
        of = memory.scattered[scattered]
        kernel, axes, entries = of["add_lists"] if lists else of["add"], of["axes"], of["entries"]
        begin, end = of["lists_given"], of["lists_end"]
        if not lists:
            begin, end = of["add_given"], of["add_end"]
        given = given_from(memory, begin, end)
    given[0] = n
    if lists:
        given[1 + axes] = offsets
    placed(given, 1 + axes + lists, source)
    placed(given, 1 + axes + lists + PLACE, target)
    return int(kernel), int(entries), given


@compiled(small=True, inline="always")
def fill(
    given: np.ndarray, step: np.void, positions: np.ndarray, slots: Slots, itemsize: int, payload: int,
    payload_stride: int, offsets: int,
) -> None:  # fmt: skip
    """What a kernel is given.

    Args:
        positions: of all kernels, records `Position`.
        itemsize: bytes of an entry.
        payload, payload_stride: the k-th integers of the calls begin at address `payload` + 4 k * `payload_stride`.
        offsets: the address of the offsets of their lists.
    """
    at, first, axes, places = 0, step["place"], step["axes"], step["places"]
    numbers = first + places
    for axis in range(axes):
        size = positions[numbers + axis]
        given[axis] = size["column"] if size["slot"] >= 0 else offsets
    at = axes
    for place in range(first, numbers):
        slot = positions[place]["slot"]
        given[at] = slots.addresses[slot] + itemsize * positions[place]["column"]
        given[at + 1] = slots.strides[slot]
        given[at + 2] = slots.lists[slot]
        at += 3
    numbers += axes
    for number in range(step["words"]):
        given[at + number] = positions[numbers + number]["column"]
    at += step["words"]
    numbers += step["words"]
    for number in range(step["integers"]):
        given[at + number] = payload + INTEGER_BYTES * int(positions[numbers + number]["column"]) * int(payload_stride)


@compiled(small=True)
def longest(host: np.ndarray, offsets: int, m: int) -> int:
    """The elements of the longest list of m calls, whose offsets begin there in the list of integers."""
    most = 0
    for at in range(offsets, offsets + m):
        most = max(most, host[at + 1] - host[at])
    return int(most)


@compiled(small=True)
def at_index(indices: int, begin: int) -> int:
    """The address of a list in the index buffer, which has one; 0 for a negative beginning: there is none."""
    return indices + INTEGER_BYTES * int(begin) if begin >= 0 else 0


@compiled(small=True)
def first_from(host: np.ndarray, begin: int, n: int, least: int) -> int:
    """Where in an ascending part of the index buffer, of n entries, the first one that is at least so large is."""
    low, high = 0, int(n)
    while low < high:
        middle = (low + high) // 2
        if host[begin + middle] < least:
            low = middle + 1
        else:
            high = middle
    return low
