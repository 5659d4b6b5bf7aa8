"""The records that the pass to the plan of the way back reads: what it goes through, and by which rules."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from edbatch.base.records import record_type


class Role(IntEnum):
    """What the way back through batches of a type is."""

    NOTHING = 0  # only parameters get gradients, from the rows that other batches leave
    COMPUTE = 1  # the type's derivative, and additions of what it computes to the operands
    OVER_LISTS = 2  # a derivative that reads lists, and additions of what it computes to operands and elements


# For compiled functions, which take plain integers for constants.
NOTHING, COMPUTE, OVER_LISTS = map(int, Role)


class Part(NamedTuple):
    """The nodes of a batch with one set of outputs that gradients flow into.

    Attributes:
        batch: its number.
        set: number of the set.
        n: nodes.
    """

    batch: int
    set: int
    n: int


class Rule(NamedTuple):
    """The way back through nodes with one set of outputs that gradients flow into.

    Attributes:
        role: a `Role`.
        type: what stands for the derivative in batches; -1: all that it leaves is given.
        window: of the results.
        given, given_end: which part of all that derivatives are given.
        computed, computed_end: which part of all that derivatives compute: a record for each operand.
        integers: of a node.
        singles: operands before lists.
        adding: what adds rows, in batches.
    """

    role: int
    type: int
    window: int
    given: int
    given_end: int
    computed: int
    computed_end: int
    integers: int
    singles: int
    adding: int


class Source(NamedTuple):
    """Something that a derivative is given.

    Attributes:
        kind: a `Given`.
        which: number of the operand, or the window of what was saved.
    """

    kind: int
    which: int


class Computed(NamedTuple):
    """Where a derivative leaves the gradient of an operand.

    Attributes:
        window: that shows it; -1: there is none.
        of_each: 1 if that of a list has a row for each node, which is that of each element; else 0.
        given: 1 if it is the gradient of the result; else 0.
    """

    window: int
    of_each: int
    given: int


class Present(NamedTuple):
    """A set of outputs that gradients flow into.

    Attributes:
        set: its number.
        operands: to which operands gradients flow on, a bit each.
    """

    set: int
    operands: int


class Buffer(NamedTuple):
    """Rows that are computed, or were saved.

    Attributes:
        set: number of the set of outputs.
        kind: number of the set's type.
        width: entries of a row.
        rows: `OWN`: what a derivative computes for each node of the set; `SAVED`: what the forward run has saved of the
            type; else there are rows for any batch, which the next one uses again: `NODES`: one for each node; or as
            many as the operand with this number has.
    """

    set: int
    kind: int
    width: int
    rows: int


OWN, SAVED, NODES = -1, -2, -3

PART, RULE, SOURCE, COMPUTED, PRESENT, BUFFER = (
    record_type(form._fields) for form in (Part, Rule, Source, Computed, Present, Buffer)
)
