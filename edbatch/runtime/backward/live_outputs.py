"""The sets of outputs that gradients flow into, by type: each has a derivative of its own; see `graph.cell.flow`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from edbatch.base.locking import signals_deferred
from edbatch.graph.cell.body import spec_of_value
from edbatch.graph.cell.entry import CellOp
from edbatch.graph.cell.flow import closed, reached
from edbatch.graph.cell.type_body import body_of_type, columns_of_type, outputs_seen
from edbatch.graph.node_type import NodeType
from edbatch.graph.op import Kind, no_gradient
from edbatch.graph.spec import ParameterSpec
from edbatch.graph.views import NODE_BITS, NODE_MASK
from edbatch.runtime.backward.flow import ROW, SetTables
from edbatch.runtime.compile.families import made_for
from edbatch.runtime.nodes import Nodes
from edbatch.runtime.type_columns import BoundType, DerivedType

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
    """The sets that were met, numbered.

    Attributes:
        sets: by number.
        tables: of them.
    """

    def __init__(self) -> None:
        self.sets: list[LiveSet] = []
        self._types: list[Any] = []
        self._numbers: dict[LiveSet, int] = {}
        self._start: list[int] = []
        self._single: list[bool] = []
        self._first: list[int] = []
        self._entries: list[Entries] = []
        self._slots: list[bool] = []
        self._unions: dict[int, int] = {}
        none, no_flags = np.zeros(0, np.int64), np.zeros(0, np.bool_)
        self.tables = SetTables(none, no_flags, none, no_flags, none, none)

    def see(self, types: Sequence[BoundType | DerivedType]) -> None:
        """Have all types, by number, in the tables; those that were there before come first."""
        if len(types) > len(self._types):
            with signals_deferred():
                for number in range(len(self._types), len(types)):
                    bound = types[number]
                    start, single = -1, True
                    if isinstance(bound, BoundType):  # nodes have it
                        whole = _only_set(bound.type)
                        start = self._number(LiveSet(number, whole or frozenset()), bound.type)
                        single = whole is not None
                    self._types.append(bound)
                    self._start.append(start)
                    self._single.append(single)
                self._renew()

    def _add(self, before: int, read: int) -> int:
        """The number of a set with outputs that are read added to it; `read` as in `SetTables`."""
        kind, live = self.sets[before].kind, self.sets[before].live
        if self._single[kind]:
            return before
        key = before << 32 | read
        if key not in self._unions:
            type = self._types[kind].type
            seen = outputs_seen(type, read) if read < ROW else _outputs_at(type, self._entries[read - ROW])
            with signals_deferred():
                self._unions[key] = self._number(LiveSet(kind, closed(body_of_type(type)[0], live.union(seen))), type)
                self._renew()
        return self._unions[key]

    def begin(self, root: int, nodes: Nodes, sets: np.ndarray) -> None:
        """Number the set that `flow.propagate` did not find at a root, which has those of earlier roots already."""
        self._join(root & NODE_MASK, root >> NODE_BITS, nodes, sets)

    def _join(self, node: int, read: int, nodes: Nodes, sets: np.ndarray) -> None:
        before = int(sets[node])
        self._add(before if before >= 0 else self._start[int(nodes.types[node])], read)

    def follow(self, node: int, nodes: Nodes, requires: np.ndarray, sets: np.ndarray) -> None:
        """Number the sets that `flow.flow` did not find when it came to a node."""
        begin = int(nodes.starts[node])
        reaches = self._first[int(sets[node])]
        for slot, operand in enumerate(nodes.args[begin : begin + int(nodes.counts[node])].tolist()):
            source = operand & NODE_MASK
            if requires[source]:
                self._join(source, operand >> NODE_BITS or ROW + reaches + slot, nodes, sets)

    def needed(self, number: int, asked: Sequence[bool]) -> list[bool]:
        """Per operand that is a node, whether its gradient is asked for and one flows on to it from a set."""
        first = self._first[number]
        return [some and bool(self.tables.slots[first + slot]) for slot, some in enumerate(asked)]

    def _number(self, one: LiveSet, type: NodeType) -> int:
        found = self._numbers.get(one)
        if found is None:
            entries = entries_reached(type, one.live)  # or fail, with nothing changed
            found = self._numbers[one] = len(self.sets)
            self.sets.append(one)
            self._first.append(-1 if entries is None else len(self._entries))
            if entries is not None:
                self._entries += entries
                self._slots += [some is not False for some, _ in entries]
        return found

    def _renew(self) -> None:
        known, keys = self.tables, sorted(self._unions)
        self.tables = SetTables(
            _longer(known.start, self._start), _longer(known.single, self._single), _longer(known.first, self._first),
            _longer(known.slots, self._slots), np.array(keys, np.int64),
            np.array([self._unions[key] for key in keys], np.int64),
        )  # fmt: skip


def _longer(column: np.ndarray, values: list[Any]) -> np.ndarray:
    """A column of all of these values, of which it has the first."""
    return np.concatenate([column, np.array(values[len(column) :], column.dtype)])


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
    body = body_of_type(type)[0]
    places = zip(columns_of_type(type), body.outputs, strict=True)
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
    body = body_of_type(type)[0]
    found = reached(body, live)[: len(body.arguments)]
    return [(bool(some.all()) if some.all() or not some.any() else some.tobytes(), len(some)) for some in found]
