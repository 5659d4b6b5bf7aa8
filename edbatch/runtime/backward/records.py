"""The records that the pass to the plan of the way back reads: what it goes through, and by which rules."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

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


PART, RULE, SOURCE, COMPUTED = (record_type(form._fields) for form in (Part, Rule, Source, Computed))


class Flow(NamedTuple):
    """Where gradients flow in a plan.

    Attributes:
        sets: per node of the graph, the number of the set of its outputs that gradients flow into; -1: none.
        parts: of records `Part`: batches are divided by the sets of their nodes.
        present: the sets that nodes have, in the order in which the parts have them: their numbers follow from what the
            process has seen, and the order in which parameters' gradients add up must not.
        rows: per set, how many nodes have it.
        operands: per set, to which operands gradients flow, a bit each.
        stopped: per window of values, whether no gradient flows to what is read through it.
    """

    sets: np.ndarray
    parts: np.ndarray
    present: np.ndarray
    rows: np.ndarray
    operands: np.ndarray
    stopped: np.ndarray


# In the place of a type: ADDITION - w, the addition of rows of window w.
ADDITION = -1
