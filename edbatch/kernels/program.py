"""The form of a compiled program: the steps of a cell (or of one op) as integers, that one compiled loop interprets.

A program computes a block of m calls at a time. Its values live in SLOTS. An argument or intermediate has a place in a
scratch buffer: m rows from entry m * place on, `stride` entries apart, at `column` of each; a result is a part of the
row that the call returns; a fixed value (a parameter, a constant) is one row for all calls.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Slot(IntEnum):
    """Kinds of slots: rows of the table are (kind, place, column, stride)."""

    ARGUMENT = 0  # where the caller has it, or its place where it has to be moved
    SCRATCH = 1
    RESULT = 2  # (kind, 0, column, 0)
    FIXED = 3  # (kind, number of the fixed value, 0, 0)


class Move(IntEnum):
    """What to do about an argument: rows of the table are (slot, entries, Move)."""

    UNUSED = 0
    IF_SCATTERED = 1  # where its rows do not lie at one distance (which may be 0)
    IF_NOT_ROWS = 2  # as a matrix for a product: also where all calls share one row
    ALWAYS = 3  # side by side with others
    UNLESS_FOLLOWED = 4  # as IF_SCATTERED; but where rows are listed, kernels follow the list


class Step(IntEnum):
    """Steps: a row of the table is (Step, and the integers that are listed). A position is (slot, column)."""

    MULTIPLY = 0  # x, w: slot, column, slot; k, n, distance between w's rows, TRANSPOSED + ADD; out: slot, column
    # A kernel over one axis: its number, entries of a row, first place, numbers of places and of columns (which follow
    # the places), numbers that it keeps for each entry, and 1 if it computes rows as groups, 0 if each entry by itself.
    KERNEL = 1
    COPY = 2  # from: slot, column; to: slot, column; entries
    LOOKUP = 3  # table: slot, entries of a row; payload: its number, or -1 - index; to: slot, column
    # A product per call; a: slot, column; b: slot, column; m, k, n; of the one that is a parameter (LEFT: a, RIGHT: b)
    # the distance between rows, and LEFT or RIGHT + TRANSPOSED; out: slot, column
    MULTIPLY_EACH = 4
    CALL = 5  # number of the kernel of one op; first place, number of places; groups, lanes; integer (-1: none)
    PYTHON = 6  # anything else: left to the caller


STEP_WIDTH = 12

# In the place of a program: left to Python; sums over lists; rows that are added to those of an operand (of a batch:
# the first of the rows, and where the list of them begins if they do not follow one another, else -1).
NONE, SUM, ADD_ROWS = -1, -2, -3
# Reductions of lists, by the names of their ops.
MEAN = -6
LISTS = {"sum_list": SUM, "maximum_list": -4, "minimum_list": -5, "mean_list": MEAN, "logsumexp_list": -7}
# The way back through means: rows of the operand, each divided by the length of its list.
DIVIDE = -8


class ListReduction(NamedTuple):
    """A type whose nodes reduce lists.

    Attributes:
        program: of `LISTS`.
        width: entries of scratch that an element takes.
    """

    program: int
    width: int


TRANSPOSED = 1  # w is stored as [n, k]
ADD = 2  # the product is added to what is there
LEFT, RIGHT = 4, 8  # which of two matrices is a parameter
