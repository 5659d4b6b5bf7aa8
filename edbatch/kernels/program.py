"""The form of a compiled program: the steps of a cell (or of one op) as records, that one compiled loop interprets.

A program computes a block of m calls at a time. Its values live in slots: an argument or intermediate in a scratch
buffer, a result as a part of the row that the call returns, a fixed value (a parameter, a constant) as one row for all
calls. Tables are NumPy arrays of records; compiled functions read `table[at]["field"]`, Python makes and reads named
tuples of the same fields.
"""

from __future__ import annotations

from typing import NamedTuple

from edbatch.base.records import record_type

# Where the values of a slot are.
SCRATCH = 0  # of an argument, where the caller has it, unless it has to be moved
RESULT = 1
FIXED = 2
SAVED = 3  # a part of the row that the call saves for a backward pass


class Slot(NamedTuple):
    """Where a value is.

    Attributes:
        storage: SCRATCH, RESULT, FIXED or SAVED.
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


# What to do about an argument.
UNUSED = 0
IF_SCATTERED = 1  # moved where its rows do not lie at one distance (which may be 0)
IF_NOT_ROWS = 2  # as a matrix for a product: also where all calls share one row
ALWAYS = 3  # moved side by side with others
UNLESS_FOLLOWED = 4  # as IF_SCATTERED; but where rows are listed, kernels follow the list


class Argument(NamedTuple):
    """An argument of a program.

    Attributes:
        slot: number of its slot; -1: unused.
        entries: of a row.
        move: UNUSED, IF_SCATTERED, IF_NOT_ROWS, ALWAYS or UNLESS_FOLLOWED.
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


# What a step does.
MULTIPLY = 0
KERNEL = 1
CALL = 2  # of a function of Python, all calls of a batch together

TRANSPOSED = 1  # a matrix is stored by columns
LEFT, RIGHT = 4, 8  # which of two matrices is a parameter

# What the groups of a kernel's step are: of each call; of each element of its list; or all of its list.
OVER_CALLS, OVER_ELEMENTS, OVER_LISTS = range(3)


class Step(NamedTuple):
    """A step of a program: a product, a kernel of the kernel language, or a call of Python.

    Attributes:
        code: MULTIPLY: out [m, n] = x [m, k] times w [k, n], for each call. KERNEL. CALL, which is given what a kernel
            would be.
        x, x_column, w, w_column, out, out_column: slots and columns.
        m, k, n: sizes.
        distance: entries between rows of the one that is a parameter.
        flags: LEFT if that is x, RIGHT if it is w, + TRANSPOSED.
        products: how many for each call, whose results lie one after the other.
        x_step, w_step: entries from the matrix of one of them to that of the next; 0: one for all.
        kernel: its number.
        place, places: the first of its positions, and the number of its places. Behind these, as columns of no slot:
            the sizes of its axes (of the axis of lists, of slot -1, none), its strides and columns, and which of the
            calls' integers it takes.
        axes, words, integers: the numbers of these.
        groups, entries: of a row, the groups, and the entries of one; if each entry is computed by itself, 1 and all.
            The axis of lists counts as 1.
        scratch: numbers that it keeps for each entry of a group.
        lanes: see `Analysis.lanes`.
        over: OVER_CALLS, OVER_ELEMENTS or OVER_LISTS.
    """

    code: int
    x: int = 0
    x_column: int = 0
    w: int = 0
    w_column: int = 0
    out: int = 0
    out_column: int = 0
    m: int = 1
    k: int = 0
    n: int = 0
    distance: int = 0
    flags: int = 0
    products: int = 1
    x_step: int = 0
    w_step: int = 0
    kernel: int = 0
    place: int = 0
    places: int = 0
    axes: int = 0
    words: int = 0
    integers: int = 0
    groups: int = 1
    entries: int = 1
    scratch: int = 0
    lanes: int = 0
    over: int = OVER_CALLS


ONE_BLOCK = 2**31  # calls at most of a block of a program that is never computed in several


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


SLOT, ARGUMENT_OF, POSITION, STEP, PROGRAM_RANGE, DISPATCH = (
    record_type(form._fields) for form in (Slot, Argument, Position, Step, ProgramRange, Dispatch)
)

# In the place of a program: none, of sources and of what is not ready; rows that are added to those of an operand (of a
# batch: the first of the rows, and where the list of them begins if they do not follow one another, else -1).
NONE, ADD_ROWS = -1, -2
