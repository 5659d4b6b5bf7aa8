"""Records of backward passes: by which rules gradients flow, where, and through what."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edbatch.base.records import record_type

# What goes back through batches of a type: only parameters get gradients, from the rows that other batches leave;
# the type's derivative, and additions of what it computes to the operands; or a derivative that reads lists, and
# additions of what it computes to operands and elements.
from edbatch.compiling.array_table import BOOL, INT64, ArrayTable, reader
from edbatch.memory.plan.addresses import COLUMNS

NOTHING, COMPUTE, OVER_LISTS = range(3)


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
    """How gradients flow through nodes with one set of outputs that gradients flow into.

    Attributes:
        role: `NOTHING`, `COMPUTE` or `OVER_LISTS`.
        type: of the derivative in batches; -1: all that it leaves is given.
        window: of the results.
        own: the arena of the rows that the derivative computes, one for each node; -1: there are none.
        given, given_end: which part of all that derivatives are given.
        computed, computed_end: which part of all that derivatives compute: a record for each operand.
        integers: of a node.
        singles: operands before lists.
        adding: what adds rows, in batches.
    """

    role: int
    type: int
    window: int
    own: int
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


PART, RULE, SOURCE, COMPUTED, PRESENT = (record_type(form._fields) for form in (Part, Rule, Source, Computed, Present))


class RuleTables(NamedTuple):
    """Rules and windows.

    Attributes:
        rules: of records `Rule`; given: what derivatives are given, of records `Source`.
        computed: per operand of a rule's type, where its derivative leaves the operand's gradient: records `Computed`.
        windows: of records `Columns`.
        stopped: per window of values, whether no gradient flows to what is read through it. A batch reads some of its
            operands stopped and others not: each that differs is seen through a window of its own.
        of_gradients: per arena, whether it is of gradients of values.
    """

    rules: np.ndarray
    given: np.ndarray
    computed: np.ndarray
    windows: np.ndarray
    stopped: np.ndarray
    of_gradients: np.ndarray


rules_in = reader(RuleTables, RULE, SOURCE, COMPUTED, COLUMNS, BOOL, BOOL)


class FlowColumns(NamedTuple):
    """Where gradients flow.

    Attributes:
        requires: per node, whether its gradient was asked for.
        sets: per node, the number of the set of its outputs that gradients flow into; -1: none do.
        parts: of records `Part`: batches are divided by the sets of their nodes.
        rows: per set, how many nodes have it.
        present: of records `Present`, the sets that nodes have.
    """

    requires: np.ndarray
    sets: np.ndarray
    parts: np.ndarray
    rows: np.ndarray
    present: np.ndarray


flow_in = reader(FlowColumns, BOOL, INT64, PART, INT64, PRESENT)


class Flow:
    """The columns, with room for more.

    Attributes:
        bytes: of all columns, with their room.
    """

    def __init__(self) -> None:
        self._hold(FlowColumns(*_of_nodes(0), *_of_sets(0)))

    @property
    def columns(self) -> FlowColumns:
        """With all their room."""
        return self._directory.tables

    @property
    def entries(self) -> np.ndarray:
        """Of the directory, as compiled code is given it."""
        return self._directory.entries

    def reserve(self, nodes: int, sets: int) -> None:
        """Have room for so many nodes, and for so many sets; what is in columns that grow does not stay."""
        room_of_nodes, room_of_sets = self._room
        if nodes <= room_of_nodes and sets <= room_of_sets:
            return
        before = self.columns
        of_nodes, of_sets = before[:3], before[3:]
        if nodes > room_of_nodes:
            of_nodes = _of_nodes(max(nodes, 2 * room_of_nodes))
        if sets > room_of_sets:
            of_sets = _of_sets(2 * sets)
        self._hold(FlowColumns(*of_nodes, *of_sets))

    def _hold(self, columns: FlowColumns) -> None:
        self._room = 0, 0  # until all is there
        self._directory = ArrayTable(columns)  # at once: an interrupt leaves no address of what is gone
        self.bytes = sum(column.nbytes for column in columns)
        self._room = len(columns.sets), len(columns.rows)


def _of_nodes(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.empty(n, np.bool_), np.empty(n, np.int64), np.empty(n, PART)


def _of_sets(n: int) -> tuple[np.ndarray, np.ndarray]:
    return np.empty(n, np.int64), np.empty(n, PRESENT)
