"""How gradients flow through the nodes of a type: what is computed, of what, and in which rows it lies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from edbatch.base.records import record_type, records
from edbatch.compiling.array_table import BOOL, ArrayTable, reader
from edbatch.graph.cell.derivative import Given
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

MOST = 256


class Rule(NamedTuple):
    """How gradients flow through nodes with one set of live outputs, as compiled code is told.

    Attributes:
        type: of the derivative in batches; -1: there is nothing to compute.
        window: of the results.
        own: the arena of the rows that the derivative computes, one for each node, from which the operands' gradients
            are added; -1: it reads lists, and its outputs are operands.
        given, computed, end: which of all records `Slot` say what the derivative is given, and then, for each operand,
            where it leaves the operand's gradient.
        integers: of a node.
        singles: operands before lists.
        adding: what adds rows, in batches.
    """

    type: int
    window: int
    own: int
    given: int
    computed: int
    end: int
    integers: int
    singles: int
    adding: int


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


RULE, SLOT = (record_type(form._fields) for form in (Rule, Slot))
NOWHERE, ROWS, EACH, AS_GIVEN = range(4)


class RuleTables(NamedTuple):
    """Records `Rule`, and those of all of them `Slot`."""

    rules: np.ndarray
    slots: np.ndarray


class WindowTables(NamedTuple):
    """Windows and arenas.

    Attributes:
        windows: of records `Columns`.
        stopped: per window of values, whether no gradient flows to what is read through it. A batch reads some of its
            operands stopped and others not: each that differs is seen through a window of its own.
        of_gradients: per arena, whether it is of gradients of values.
    """

    windows: np.ndarray
    stopped: np.ndarray
    of_gradients: np.ndarray


rules_in = reader(RuleTables, RULE, SLOT)
windows_in = reader(WindowTables, COLUMNS, BOOL, BOOL)


class GradientRule(NamedTuple):
    """How gradients flow through nodes with one set of live outputs, to some of their operands.

    Attributes:
        set, kind: the number of the set, and of its type.
        own: window of the rows that the derivative computes, one for each node; -1: there are none.
        runs: number of the derivative in batches; -1: there is nothing to compute.
        how: the derivative; None of sources.
        given, computed: see `Rule`.
        adding: what adds rows, in batches.
    """

    set: int
    kind: int
    own: int
    runs: int
    how: CompiledDerivative | None
    given: list[Slot]
    computed: list[Slot]
    adding: int


class ChosenRules(NamedTuple):
    """The rules of a backward pass.

    Attributes:
        rules: in the order in which their sets come in the forward run: the numbers of sets follow from what the
            process has seen, and the order in which parameters' gradients add up must not.
        of_sets: per set, the place of its rule.
        tables: `RuleTables`.
        kinds: what runs in batches.
        reads: the parameters whose values are needed.
    """

    rules: list[GradientRule]
    of_sets: np.ndarray
    tables: ArrayTable[RuleTables]
    kinds: frozenset[int]
    reads: frozenset[ParameterSpec]


class GradientRules:
    """The rules that the graphs of a type table have met.

    Attributes:
        of_kinds: those that compute something, by their number in batches.
    """

    def __init__(self, table: TypeTable) -> None:
        self._table = table
        self.of_kinds: dict[int, GradientRule] = {}
        self._rules: dict[Any, GradientRule] = {}
        self._adding: dict[np.dtype, int] = {}
        self._chosen: dict[Any, ChosenRules] = {}
        self._windows: ArrayTable[WindowTables] | None = None

    def windows(self) -> np.ndarray:
        """Directory of the `WindowTables`."""
        columns, known = self._table.windows.columns(), self._windows
        if known is None or known.tables.windows is not columns:
            view_stops, of_views = stopping_views(), self._table.view_windows
            stopping = view_stops[: len(of_views)] & (of_views[: len(view_stops)] >= 0)
            stopped = np.zeros(len(columns), np.bool_)
            stopped[of_views[: len(stopping)][stopping]] = True
            of_gradients = np.array(self._table.windows.of_gradients, np.bool_)
            known = self._windows = ArrayTable(WindowTables(columns, stopped, of_gradients))
        return known.entries

    def choose(self, flow: FlowColumns, saved: Mapping[int, Saved]) -> ChosenRules:
        """The rules for the sets that parts have; `saved`: what the forward run has saved, per type."""
        present = list(dict.fromkeys(flow.parts["set"][: flow.n_parts.item(0)][::-1].tolist()))
        operands, sets = flow.operands[present].tolist(), self._table.live_outputs.sets
        keys = [(number, bits, sets[number].kind in saved) for number, bits in zip(present, operands, strict=True)]
        whole = tuple(keys)
        found = self._chosen.get(whole)
        if found is None:
            if len(self._chosen) >= MOST:
                self._chosen.clear()
            for key in keys:
                if key not in self._rules:
                    self._rules[key] = self._rule(*key[:2], saved.get(sets[key[0]].kind))
            found = self._chosen[whole] = self._together([self._rules[key] for key in keys])
        return found

    def _together(self, rules: list[GradientRule]) -> ChosenRules:
        slots, made = list[Slot](), list[Rule]()
        for rule in rules:
            type: BoundType = self._table.bound[rule.kind]
            begin, own = len(slots), -1 if rule.own < 0 else self._table.windows.windows[rule.own].arena
            slots += rule.given + rule.computed
            places, op = (begin, begin + len(rule.given), len(slots)), type.type.op
            made.append(Rule(rule.runs, type.window, own, *places, op.payload, op.singles, rule.adding))
        of_sets = np.full(1 + max([rule.set for rule in rules]), -1, np.int64)
        of_sets[[rule.set for rule in rules]] = range(len(rules))
        tables = RuleTables(records(made, RULE), records(slots, SLOT))
        kinds = frozenset([rule.adding for rule in rules] + [rule.runs for rule in rules if rule.runs >= 0])
        reads = frozenset[ParameterSpec]().union(*(rule.how.reads for rule in rules if rule.how is not None))
        return ChosenRules(rules, of_sets, ArrayTable(tables), kinds, reads)

    def _rule(self, number: int, bits: int, saved: Saved | None) -> GradientRule:
        """How gradients flow from a set of live outputs on to operands, a bit each."""
        table = self._table
        kind, live = table.live_outputs.sets[number]
        type: BoundType = table.bound[kind]
        dtype = type.type.out.dtype
        if dtype not in self._adding:
            self._adding[dtype] = table.derived([DerivedType(adding_rows(dtype, table.backend), 0)])[0]
        nothing = GradientRule(number, kind, -1, -1, None, [], [], self._adding[dtype])
        if table.is_source[kind]:
            return nothing
        slots = sum(not isinstance(operand, ParameterSpec) for operand in type.type.operands)
        needed = [bool(bits >> min(slot, MOST_SLOTS) & 1) for slot in range(slots)]
        how = compiled(type, needed, saved is not None, live)
        rule, own = nothing._replace(how=how), -1
        if type.type.lists:
            if not any(how.operands):
                return rule
            computed = self._of_lists(type, how)
        elif how.program is None:
            return rule
        else:
            own = table.windows.own(how.width, dtype)
            computed = [
                Slot(NOWHERE, -1)
                if place is None
                else Slot(ROWS, table.windows.part(own, place.column, place.spec.size))
                for place in how.operands
            ]
        if how.program is not None:
            runs = table.derived([DerivedType(how.program, max(own, 0))])[0]
            rule = self.of_kinds[runs] = rule._replace(own=own, runs=runs, given=self._given(how, saved))
        return rule._replace(computed=computed)

    def _given(self, how: CompiledDerivative, saved: Saved | None) -> list[Slot]:
        given = []
        for source, which in how.given:
            if source is Given.SAVED:
                assert saved is not None
                column, spec = saved.how.places[which]
                which = self._table.windows.part(saved.how.window, column, spec.size)
            given.append(Slot(int(source), which))
        return given

    def _of_lists(self, type: BoundType, how: CompiledDerivative) -> list[Slot]:
        """Where the derivative of an op over lists leaves gradients: in windows that the next batch uses again."""
        computed = []
        for slot, place in enumerate(how.operands):
            if place is None:
                computed.append(Slot(NOWHERE, -1))
            elif place.column < 0:
                computed.append(Slot(AS_GIVEN, type.window + GRADIENT))
            else:
                kind = EACH if slot >= type.type.op.singles and not place.spec.each else ROWS
                computed.append(Slot(kind, self._table.windows.own(place.spec.size, place.spec.dtype)))
        return computed
