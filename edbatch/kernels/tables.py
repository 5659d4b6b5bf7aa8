"""The tables that the compiled loops of every device read, and where the rows of operands and results lie in memory.

Addresses are those of the device; entries are float32.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edbatch.compiled import compiled
from edbatch.kernels.program import RESULT, SCRATCH
from edbatch.memory.plan import GATHER, GATHER_MANY

BYTES = 4  # of an entry
INTEGER_BYTES = 4  # of an integer of a call


class Batches(NamedTuple):
    """Of a plan; see `memory.plan.Plan`."""

    batches: np.ndarray
    operands: np.ndarray
    segments: np.ndarray


class Memory(NamedTuple):
    """Where values are.

    Attributes:
        windows: of records `Columns`.
        arenas: of records `Rows`.
        results: per type, the window of its results; of ADD_ROWS, that of the rows that are added.
        kept: per type, a record `Kept`: where its program keeps its results together with what is saved.
    """

    windows: np.ndarray
    arenas: np.ndarray
    results: np.ndarray
    kept: np.ndarray


class Programs(NamedTuple):
    """Programs one after the other (see `kernels.program`).

    Attributes:
        program_of: per type its program, or what stands in its place.
        extents: of records `Extent`: which part of the other tables is a program's.
        slots, arguments, steps, places: of all programs, of records `Slot`, `Argument`, `Step`, `Position`.
        kernels: addresses, or handles, of generated kernels.
        addresses: of parameters and constants.
    """

    program_of: np.ndarray
    extents: np.ndarray
    slots: np.ndarray
    arguments: np.ndarray
    steps: np.ndarray
    places: np.ndarray
    kernels: np.ndarray
    addresses: np.ndarray


@compiled(small=True, error_model="numpy")
def grouped(tables: tuple[np.ndarray, ...]) -> tuple[Batches, Memory, Programs]:
    """The tables of these, that were given one after the other.

    From Python they come singly: Numba takes 5 us to find out the types of a tuple's entries, and knows single arrays.
    """
    return (
        Batches(tables[0], tables[1], tables[2]),
        Memory(tables[3], tables[4], tables[5], tables[6]),
        Programs(
            tables[7], tables[8], tables[9], tables[10], tables[11], tables[12], tables[13], tables[14]
        ),
    )  # fmt: skip


@compiled(small=True, error_model="numpy")
def most_slots(extents: np.ndarray) -> int:
    """Of any program."""
    most = 1
    for program in range(len(extents)):
        most = max(most, extents[program]["slots_end"] - extents[program]["slots"])
    return int(most)


@compiled(small=True, error_model="numpy")
def all_contiguous(operands: np.ndarray, segments: np.ndarray, windows: np.ndarray) -> bool:
    """Whether the rows of operands can be read by address."""
    for at in range(len(operands)):
        operand = operands[at]
        if operand["access"] != GATHER_MANY:
            if windows[operand["window"]]["width"] == 0:
                return False
        else:
            for number in range(operand["first"], operand["first"] + operand["segments"]):
                if windows[segments[number]["window"]]["width"] == 0:
                    return False
    return True


@compiled(small=True, error_model="numpy")
def window_rows(window: int, memory: Memory) -> tuple[int, int]:
    """Of the rows that a contiguous window shows: address of the first, entries from one to the next."""
    shown = memory.windows[window]
    arena = memory.arenas[shown["arena"]]
    return arena["address"] + BYTES * shown["column"], arena["width"]


@compiled(small=True, error_model="numpy")
def operand_rows(operand: np.void, begin: int, memory: Memory) -> tuple[int, int]:
    """Where an operand's rows lie, of one window, from number `begin` on: address, entries from one to the next.

    Rows that are gathered are listed in the plan's indices; they count from the address.
    """
    source, stride = window_rows(operand["window"], memory)
    if operand["access"] == GATHER:
        return source, stride
    distance = operand["distance"]
    return source + BYTES * (operand["first"] + begin * distance) * stride, distance * stride


@compiled(small=True, error_model="numpy")
def result_rows(kind: int, row: int, memory: Memory) -> tuple[int, int, int]:
    """Where the results of a type lie from `row` on: address, entries from one to the next, entries of one."""
    window = memory.results[kind]
    source, stride = window_rows(window, memory)
    return source + BYTES * row * stride, stride, memory.windows[window]["width"]


@compiled(small=True, error_model="numpy")
def computed_rows(kept: np.void, n: int, out: int, stride: int) -> tuple[int, int]:
    """Address and distance of the rows where a program computes n calls: at `out`, or where it keeps what it saves.

    Args:
        kept: the record of its type; counts the calls.
    """
    if kept["address"] == 0:
        return out, stride
    first = kept["address"] + BYTES * kept["n"] * kept["width"]
    kept["n"] += n
    return first, kept["width"]


@compiled(small=True, error_model="numpy")
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
        slot = slots[at]
        if slot["storage"] <= SCRATCH:
            addresses[at] = scratch + BYTES * (m * slot["place"] + slot["column"])
            strides[at] = slot["stride"]
        elif slot["storage"] == RESULT:
            addresses[at] = result + BYTES * slot["column"]
            strides[at] = result_stride
        else:
            addresses[at] = fixed[slot["place"]]
            strides[at] = 0


@compiled(small=True)
def given_words(step: np.void) -> int:
    """Of what the kernel of a step is given; see `language.given`."""
    return int(step["axes"] + 3 * step["places"] + step["words"] + 2 * step["integers"] + 1)


@compiled(small=True)
def fill(
    given: np.ndarray, step: np.void, positions: np.ndarray, addresses: np.ndarray, strides: np.ndarray,
    lists: np.ndarray, payload: int, payload_stride: int,
) -> None:  # fmt: skip
    """What a kernel is given, but for scratch.

    Args:
        positions: of all kernels, records `Position`.
        payload, payload_stride: the k-th integers of the calls begin at address `payload` + 4 k * `payload_stride`.
    """
    at, first, axes, places = 0, step["place"], step["axes"], step["places"]
    numbers = first + places
    for axis in range(axes):
        given[axis] = positions[numbers + axis]["column"]
    at = axes
    for place in range(first, numbers):
        slot = positions[place]["slot"]
        given[at] = addresses[slot] + BYTES * positions[place]["column"]
        given[at + 1] = BYTES * strides[slot]
        given[at + 2] = lists[slot]
        at += 3
    numbers += axes
    for number in range(step["words"]):
        given[at + number] = positions[numbers + number]["column"]
    at += step["words"]
    numbers += step["words"]
    for number in range(step["integers"]):
        given[at] = payload + INTEGER_BYTES * int(positions[numbers + number]["column"]) * int(payload_stride)
        given[at + 1] = INTEGER_BYTES
        at += 2
    given[at] = 0


@compiled(small=True)
def block_rows(n: int, most: int) -> int:
    """How many calls to compute at a time: n in parts of equal size, none of more than `most`."""
    return -(-n // -(-n // most))
