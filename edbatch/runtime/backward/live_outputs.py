"""The sets of outputs that gradients flow into, by type: each has a derivative of its own; see `graph.cell.flow`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edbatch.base.locking import signals_deferred
from edbatch.compiling.array_table import ArrayTable
from edbatch.graph.cell.body import spec_of_value
from edbatch.graph.cell.entry import CellOp
from edbatch.graph.cell.flow import closed, reached
from edbatch.graph.cell.gradient_sum import stops
from edbatch.graph.cell.type_body import body_of_type, outputs_seen
from edbatch.graph.node_type import NodeType
from edbatch.graph.op import Kind, no_gradient
from edbatch.graph.spec import ParameterSpec
from edbatch.graph.views import VIEWS
from edbatch.runtime.backward.flow import ROW, FlowTables
from edbatch.runtime.compile.lengths import made_for
from edbatch.runtime.type_columns import BoundType

if TYPE_CHECKING:
    from edbatch.runtime.type_table import TypeTable

# Whether gradients flow into an operand: into all of its entries or none, or the truth values of each; and how many
# entries there are.
Entries = tuple[bool | bytes, int]


class LiveSet(NamedTuple):
    """One of the sets.

    Attributes:
        kind: number of the type.
        live: the outputs, by number.
    """

    kind: int
    live: frozenset[int]


class LiveOutputs:
    """The sets that were met of the types of a table, numbered.

    Attributes:
        sets: by number.
    """

    def __init__(self, table: TypeTable) -> None:
        self._table = table
        self.sets: list[LiveSet] = []
        self._numbers: dict[LiveSet, int] = {}
        self._start: list[int] = []
        self._single: list[bool] = []
        self._first: list[int] = []
        self._entries: list[Entries] = []
        self._unions: dict[int, int] = {}
        self._directory: ArrayTable[FlowTables] | None = None

    def tables(self) -> np.ndarray:
        """Directory of the `FlowTables` of all types and views that there are."""
        table, known, view_stops = self._table, self._directory, stopping_views()
        facts = table.facts.tables
        if (
            known is None
            or known.tables.holds is not facts.holds_parameters
            or known.tables.view_stops is not view_stops
            or len(known.tables.first) != len(self._first)
            or len(known.tables.keys) != len(self._unions)
        ):
            with signals_deferred():
                for number in range(len(self._start), table.count):
                    bound, start, single = table.bound[number], -1, True
                    if isinstance(bound, BoundType):  # nodes have it
                        whole = _only_set(bound.type)
                        start = self._number(LiveSet(number, whole or frozenset()), bound.type)
                        single = whole is not None
                    self._start.append(start)
                    self._single.append(single)
            keys = np.array(sorted(self._unions), np.int64)
            known = self._directory = ArrayTable(
                FlowTables(
                    facts.holds_parameters, facts.ends_gradients, view_stops, facts.singles, facts.lists,
                    np.array(self._start, np.int64), np.array(self._single, np.bool_), np.array(self._first, np.int64),
                    np.array([some is not False for some, _ in self._entries], np.bool_),
                    keys, np.array([self._unions[key] for key in keys.tolist()], np.int64),
                )
            )  # fmt: skip
        return known.entries

    def see(self, key: int) -> None:
        """Number the set that a key of `FlowTables` leads to: one that there is, with outputs that are read added."""
        (kind, live), read = self.sets[key >> 32], key & 0xFFFFFFFF
        type = self._table.bound[kind].type
        seen = outputs_seen(type, read) if read < ROW else _outputs_at(type, self._entries[read - ROW])
        with signals_deferred():
            found = closed(body_of_type(type), live.union(seen))
            self._unions[key] = self._number(LiveSet(kind, found), type)

    def _number(self, one: LiveSet, type: NodeType) -> int:
        found = self._numbers.get(one)
        if found is None:
            entries = entries_reached(type, one.live)  # or fail, with nothing changed
            found = self._numbers[one] = len(self.sets)
            self.sets.append(one)
            self._first.append(-1 if entries is None else len(self._entries))
            self._entries += entries or ()
        return found


def stopping_views() -> np.ndarray:
    """Per code of a view, whether gradients end there."""
    global _stops
    known = _stops
    if len(known) < len(VIEWS):
        _stops = known = np.append(known, [stops(view) for view in VIEWS[len(known) :]])
    return known


_stops = np.zeros(1, np.bool_)  # code 0 is no view


def _only_set(type: NodeType) -> frozenset[int] | None:
    """The set of outputs that gradients flow into whatever is read; None if that depends on what is."""
    if not isinstance(type.op, CellOp):
        return frozenset([0])
    body = type.op.body
    found = {closed(body, [number]) for number in range(len(body.outputs))}
    return found.pop() if len(found) == 1 else None


def _outputs_at(type: NodeType, entries: Entries) -> list[int]:
    """The outputs that have some of these entries of a row."""
    some, size = entries
    reached = np.frombuffer(some, np.bool_) if isinstance(some, bytes) else np.full(size, some)
    body = body_of_type(type)
    places = zip(body.columns, body.outputs, strict=True)
    return [k for k, (at, x) in enumerate(places) if reached[at : at + spec_of_value(body, x).size].any()]


def entries_reached(type: NodeType, live: frozenset[int]) -> list[Entries] | None:
    """Per operand that is a node, into which of its entries gradients flow; None: all of them.

    Args:
        live: the outputs of the type that gradients flow into.
    """
    if type.op.kind is Kind.SOURCE or type.op.variadic:
        return None
    if not isinstance(type.op, CellOp) and type.op.composite is None:
        flows = bool(live) and type.op.gradient is not no_gradient
        return [(flows, operand.size) for operand in type.operands if not isinstance(operand, ParameterSpec)]
    return made_for(type, ("reached", live), lambda of: _reached(of, live))


def _reached(type: NodeType, live: frozenset[int]) -> list[Entries]:
    body = body_of_type(type)
    found = reached(body, live)[: len(body.arguments)]
    return [(bool(some.all()) if some.all() or not some.any() else some.tobytes(), len(some)) for some in found]
