"""How gradients flow through the nodes of a type: what is computed, of what, and in which rows it lies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edbatch.base.records import record_type, records
from edbatch.compiling.array_table import BOOL, ArrayTable, reader
from edbatch.graph.cell.derivative import Given
from edbatch.graph.cell.derivative_row import Place
from edbatch.graph.spec import ParameterSpec
from edbatch.kernels.row_kernels import adding_rows
from edbatch.memory.plan.addresses import COLUMNS
from edbatch.memory.plan.windows import GRADIENT
from edbatch.runtime.backward.flow import MOST_SLOTS, FlowColumns
from edbatch.runtime.backward.live_outputs import stopping_views
from edbatch.runtime.backward.saving import Saved
from edbatch.runtime.compile.derivatives import CompiledDerivative, compiled
from edbatch.runtime.type_columns import BoundType, DerivedType

if TYPE_CHECKING:
    from edbatch.runtime.type_table import TypeTable


class GradientRule(NamedTuple):
    """How gradients flow through nodes with one set of live outputs, to some of their operands.

    Attributes:
        number: of the rule.
        set, kind: the number of the set, and of its type.
        runs: number of the derivative in batches; -1: there is nothing to compute.
        window: of the results.
        own: window of the rows that the derivative computes, one for each node, from which the operands' gradients are
            added; -1: it reads lists, and its outputs are operands.
        given, computed, end: which of all records `Slot` say what the derivative is given, and then, for each operand,
            where it leaves the operand's gradient.
        integers: of a node.
        singles: operands before lists.
        how: the derivative, which compiled code is not told; None of sources.
    """

    number: int
    set: int
    kind: int
    runs: int
    window: int
    own: int
    given: int
    computed: int
    end: int
    integers: int
    singles: int
    how: CompiledDerivative | None


class Slot(NamedTuple):
    """What a derivative is given, or computes.

    Attributes:
        kind: a `Given`; or `NOWHERE`, if there is no gradient, `ROWS`, which are computed, one for each row that is
            read, `EACH`, where that of a list has a row for each node, which is that of each element, or `AS_GIVEN`, if
            it is the gradient of the result for each element.
        which: number of the operand, or the window of what was saved or is computed.
    """

    kind: int
    which: int


RULE, SLOT = record_type(GradientRule._fields[:-1]), record_type(Slot._fields)
NOWHERE, ROWS, EACH, AS_GIVEN = range(4)


class RuleTables(NamedTuple):
    """Rules, and the windows of what they read and compute.

    Attributes:
        rules, slots: of each a record, a `GradientRule` without its last field; and those of all of them `Slot`.
        windows: records `Columns`.
        stopped: per window of values, whether no gradient flows to what is read through it. A batch reads some of its
            operands stopped and others not: each that differs is seen through a window of its own.
    """

    rules: np.ndarray
    slots: np.ndarray
    windows: np.ndarray
    stopped: np.ndarray


rules_in = reader(RuleTables, RULE, SLOT, COLUMNS, BOOL)


class GradientRules:
    """The rules that the graphs of a type table have met.

    Attributes:
        of_kinds: those that compute something, by their number in batches.
    """

    def __init__(self, table: TypeTable) -> None:
        self._table = table
        self.of_kinds: dict[int, GradientRule] = {}
        self._rules: dict[tuple[int, int, bool], GradientRule] = {}
        self._slots: list[Slot] = []
        self._adding: dict[np.dtype, int] = {}
        self._tables: ArrayTable[RuleTables] | None = None

    def tables(self) -> np.ndarray:
        """Directory of the `RuleTables`."""
        columns, known = self._table.windows.columns(), self._tables
        if known is None or known.tables.windows is not columns or len(known.tables.rules) < len(self._rules):
            view_stops, of_views = stopping_views(), self._table.facts.tables.view_windows
            stopping = view_stops[: len(of_views)] & (of_views[: len(view_stops)] >= 0)
            stopped = np.zeros(len(columns), np.bool_)
            stopped[of_views[: len(stopping)][stopping]] = True
            rules = records([rule[:-1] for rule in self._rules.values()], RULE), records(self._slots, SLOT)
            known = self._tables = ArrayTable(RuleTables(*rules, columns, stopped))
        return known.entries

    def adding(self, dtype: np.dtype) -> int:
        """What adds rows, in batches."""
        if dtype not in self._adding:
            self._adding[dtype] = self._table.derived([DerivedType(adding_rows(dtype, self._table.backend), 0)])[0]
        return self._adding[dtype]

    def choose(self, flow: FlowColumns, saved: Mapping[int, Saved]) -> list[GradientRule]:
        """The rules for the sets that parts have, in the order in which these come in the forward run.

        The numbers of sets follow from what the process has seen, and the order in which parameters' gradients add up
        must not.

        Args:
            saved: what the forward run has saved, per type.
        """
        present = list(dict.fromkeys(flow.parts["set"][: flow.n_parts.item(0)][::-1].tolist()))
        sets, found = self._table.live_outputs.sets, list[GradientRule]()
        for number, bits in zip(present, flow.operands[present].tolist(), strict=True):
            of_type = saved.get(sets[number].kind)
            key = number, bits, of_type is not None
            if key not in self._rules:
                self._rules[key] = self._rule(number, bits, of_type)
            found.append(self._rules[key])
        return found

    def _rule(self, number: int, bits: int, saved: Saved | None) -> GradientRule:
        """How gradients flow from a set of live outputs on to operands, a bit each."""
        table = self._table
        kind, live = table.live_outputs.sets[number]
        type: BoundType = table.bound[kind]
        op = type.type.op
        how, own, runs, given, computed = None, -1, -1, list[Slot](), list[Slot]()
        if not table.facts.tables.is_source[kind]:
            slots = sum(not isinstance(operand, ParameterSpec) for operand in type.type.operands)
            needed = [bool(bits >> min(slot, MOST_SLOTS) & 1) for slot in range(slots)]
            how = compiled(type, needed, saved is not None, live)
            if any(how.operands) if type.type.lists else how.program is not None:
                if not type.type.lists:
                    own = table.windows.own(how.width, type.type.out.dtype)
                computed = [self._left(type, slot, place, own) for slot, place in enumerate(how.operands)]
                if how.program is not None:
                    runs = table.derived([DerivedType(how.program, max(own, 0))])[0]
                    given = self._given(how, saved)
        begin = len(self._slots)
        self._slots += given + computed
        places = begin, begin + len(given), len(self._slots)
        of_rule = len(self._rules), number, kind, runs, type.window, own
        rule = GradientRule(*of_rule, *places, op.payload, op.singles, how)
        if runs >= 0:
            self.of_kinds[runs] = rule
        return rule

    def _given(self, how: CompiledDerivative, saved: Saved | None) -> list[Slot]:
        given = []
        for source, which in how.given:
            if source is Given.SAVED:
                assert saved is not None
                column, spec = saved.how.places[which]
                which = self._table.windows.part(saved.how.window, column, spec.size)
            given.append(Slot(int(source), which))
        return given

    def _left(self, type: BoundType, slot: int, place: Place | None, own: int) -> Slot:
        """Where a derivative leaves an operand's gradient: of an op over lists, in a window that the next batch uses
        again."""
        windows = self._table.windows
        if place is None:
            return Slot(NOWHERE, -1)
        if own >= 0:
            return Slot(ROWS, windows.part(own, place.column, place.spec.size))
        if place.column < 0:
            return Slot(AS_GIVEN, type.window + GRADIENT)
        kind = EACH if slot >= type.type.op.singles and not place.spec.each else ROWS
        return Slot(kind, windows.own(place.spec.size, place.spec.dtype))
