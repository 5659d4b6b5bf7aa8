"""The form of a compiled program: the steps of a cell (or of one op) as records, that one compiled loop interprets.

A program computes a block of m calls at a time. Its values live in slots: an argument or intermediate in a scratch
buffer, a result as a part of the row that the call returns, a fixed value (a parameter, a constant) as one row for all
calls. Tables are NumPy arrays of records; compiled functions read `table[at]["field"]`, Python makes and reads named
tuples of the same fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from edbatch.base.records import record_type, records


class Storage(IntEnum):
    """Where the values of a slot are."""

    SCRATCH = 0  # of an argument, where the caller has it, unless it has to be moved
    RESULT = 1
    FIXED = 2
    SAVED = 3  # a part of the row that the call saves for a backward pass


class Slot(NamedTuple):
    """Where a value is.

    Attributes:
        storage: a `Storage`.
        place: in scratch, its m rows begin at entry m * place; of a fixed value, its number.
        column: where it begins in each row.
        stride: entries from row to row, in scratch.
        each: in scratch, so many entries further for each element of the calls' lists.
    """

    storage: int
    place: int
    column: int
    stride: int
    each: int = 0


class Move(IntEnum):
    """What to do about an argument."""

    UNUSED = 0
    IF_SCATTERED = 1  # where its rows do not lie at one distance (which may be 0)
    IF_NOT_ROWS = 2  # as a matrix for a product: also where all calls share one row
    ALWAYS = 3  # side by side with others
    UNLESS_FOLLOWED = 4  # as IF_SCATTERED; but where rows are listed, kernels follow the list


class Argument(NamedTuple):
    """An argument of a program.

    Attributes:
        slot: number of its slot; -1: unused.
        entries: of a row.
        move: a `Move`.
        elements: 1 if there is a row for each element of the calls' lists, else 0.
    """

    slot: int
    entries: int
    move: int
    elements: int = 0


class Position(NamedTuple):
    """Where a place of a kernel begins: a column of a slot. Behind a kernel's places, numbers; of no slot."""

    slot: int
    column: int


class Code(IntEnum):
    """What a step does."""

    MULTIPLY = 0
    MULTIPLY_EACH = 1
    KERNEL = 2
    CALL = 3  # of a function of Python, all calls of a batch together


# For compiled functions, which take plain integers for constants.
SCRATCH, RESULT, FIXED, SAVED = map(int, Storage)
UNUSED, IF_SCATTERED, IF_NOT_ROWS, ALWAYS, UNLESS_FOLLOWED = map(int, Move)
MULTIPLY, MULTIPLY_EACH, KERNEL, CALL = map(int, Code)

ONE_BLOCK = 2**31  # calls at most of a block of a program that is never computed in several

TRANSPOSED = 1  # a matrix is stored by columns
LEFT, RIGHT = 4, 8  # which of two matrices is a parameter


class Multiply(NamedTuple):
    """out [n] = x [k] times a parameter, for all calls together.

    Attributes:
        x, x_column, out, out_column: slots and columns.
        w: slot of the parameter [k, n]; TRANSPOSED: stored as [n, k].
        k, n: sizes.
        distance: entries between rows of the parameter.
        flags: TRANSPOSED or 0.
    """

    x: int
    x_column: int
    w: int
    k: int
    n: int
    distance: int
    flags: int
    out: int
    out_column: int
    code: int = Code.MULTIPLY


class MultiplyEach(NamedTuple):
    """out [m, n] = x [m, k] times w [k, n], for each call.

    Attributes:
        x, x_column, w, w_column, out, out_column: slots and columns.
        m, k, n: sizes.
        distance: entries between rows of the one that is a parameter.
        flags: LEFT if that is x, RIGHT if it is w, + TRANSPOSED.
        products: how many for each call, whose results lie one after the other.
        x_step, w_step: entries from the matrix of one of them to that of the next; 0: one for all.
    """

    x: int
    x_column: int
    w: int
    w_column: int
    m: int
    k: int
    n: int
    distance: int
    flags: int
    out: int
    out_column: int
    products: int = 1
    x_step: int = 0
    w_step: int = 0
    code: int = Code.MULTIPLY_EACH


class Over(IntEnum):
    """What the groups of a kernel's step are: of each call; of each element of its list; or all of its list."""

    CALLS = 0
    ELEMENTS = 1
    LISTS = 2


OVER_CALLS, OVER_ELEMENTS, OVER_LISTS = map(int, Over)


class Grouping(IntEnum):
    """What the groups of a kernel are: how many threads of a GPU may share one."""

    NONE = 0  # each entry is computed by itself
    ORDERED = 1  # entries are taken one after the other
    COLUMNS = 2  # neighbours in memory are of neighbouring groups
    ENTRIES = 3  # neighbours in memory are of one group


UNGROUPED, ORDERED, COLUMNS, ENTRIES = map(int, Grouping)


class KernelStep(NamedTuple):
    """A kernel of the kernel language.

    Attributes:
        kernel: its number.
        place, places: the first of its positions, and the number of its places. Behind these, as columns of no slot:
            the sizes of its axes (of the axis of lists, of slot -1, none), its strides and columns, and which of the
            calls' integers it takes.
        axes, words, integers: the numbers of these.
        groups, entries: of a row, the groups, and the entries of one; if each entry is computed by itself, 1 and all.
            The axis of lists counts as 1.
        scratch: numbers that it keeps for each entry of a group.
        grouping: a `Grouping`.
        over: an `Over`.
    """

    kernel: int
    place: int
    places: int
    axes: int
    words: int
    integers: int
    groups: int
    entries: int
    scratch: int
    grouping: int
    over: int = Over.CALLS
    code: int = Code.KERNEL


Step = Multiply | MultiplyEach | KernelStep


class ProgramRange(NamedTuple):
    """Which part of the tables of all programs is one program's.

    Attributes:
        slots, slots_end, arguments, arguments_end, steps, steps_end: of these tables.
        addresses, kernels, places: where its own begin.
        calls: of a block at most.
        itemsize: bytes of an entry: all values of a program are of one dtype.
        width, element_width: bytes of scratch for a call, and for an element of its list.
        lists: the number of an argument that is a list; -1: none is.
    """

    slots: int
    slots_end: int
    arguments: int
    arguments_end: int
    steps: int
    steps_end: int
    addresses: int
    kernels: int
    places: int
    calls: int
    itemsize: int
    width: int
    element_width: int
    lists: int = -1


class Dispatch(NamedTuple):
    """How batches of a type run.

    Attributes:
        program: number of a program; or what stands in its place.
        itemsize: of the entries of what has no program.
        kernel: of `ADD_ROWS`, what adds rows one to one.
        to_groups: of `ADD_ROWS`, the kernel that adds groups of rows to one each.
    """

    program: int
    itemsize: int = 0
    kernel: int = 0
    to_groups: int = 0


_STEPS = (Multiply, MultiplyEach, KernelStep)
SLOT, ARGUMENT_OF, POSITION, PROGRAM_RANGE, DISPATCH, STEP = (
    record_type(fields)
    for fields in (
        Slot._fields,
        Argument._fields,
        Position._fields,
        ProgramRange._fields,
        Dispatch._fields,
        dict.fromkeys(name for form in _STEPS for name in form._fields),  # a step has those of its code; others are 0
    )
)

_as_step = {  # given the fields of a step, and 0
    form: itemgetter(*[form._fields.index(name) if name in form._fields else -1 for name in STEP.names or ()])
    for form in _STEPS
}


def step_table(steps: Sequence[Step]) -> np.ndarray:
    """Steps as an array of records."""
    return records([_as_step[step.__class__]((*step, 0)) for step in steps], STEP)


# In the place of a program: none, of sources and of what is not ready; rows that are added to those of an operand (of a
# batch: the first of the rows, and where the list of them begins if they do not follow one another, else -1).
NONE, ADD_ROWS = -1, -2
