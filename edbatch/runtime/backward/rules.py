"""How gradients flow through the nodes of a type: what is computed, of what, and in which rows it lies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from edbatch.base.locking import signals_deferred
from edbatch.base.records import records
from edbatch.compiling.array_table import ArrayTable
from edbatch.graph.cell.derivative import Given
from edbatch.graph.cell.gradient_sum import stops
from edbatch.graph.options import current_options
from edbatch.graph.sources import PARAMETER
from edbatch.graph.spec import ParameterSpec
from edbatch.graph.views import VIEWS
from edbatch.kernels.row_kernels import adding_rows
from edbatch.memory.plan.windows import GRADIENT
from edbatch.runtime.backward.records import (
    COMPUTE,
    COMPUTED,
    NOTHING,
    OVER_LISTS,
    RULE,
    SOURCE,
    Computed,
    Rule,
    RuleTables,
    Source,
)
from edbatch.runtime.backward.saving import Saved
from edbatch.runtime.compile.derivatives import CompiledDerivative, compiled
from edbatch.runtime.compile.growing_table import GrowingTable
from edbatch.runtime.type_columns import BoundType, DerivedType
from edbatch.runtime.type_table import TypeTable

_NO_FLAGS = np.zeros(0, np.bool_)
_NOWHERE = Computed(-1, 0, 0)
MOST = 256


class GradientRule(NamedTuple):
    """How gradients flow through nodes with one set of outputs that gradients flow into, to some of their operands.

    Attributes:
        set, kind: the number of the set, and of its type.
        own: window of the rows that the derivative computes, one for each node; -1: there are none.
        runs: number of the derivative in batches; -1: there is nothing to compute.
        how: the derivative; None of sources.
    """

    set: int
    kind: int
    own: int
    runs: int
    how: CompiledDerivative | None


class _Found(NamedTuple):
    """A rule that has no number yet; see `Rule` and `GradientRule`.

    Attributes:
        given, computed: records of the tables.
    """

    role: int
    own: int = -1
    runs: DerivedType | None = None
    how: CompiledDerivative | None = None
    given: Sequence[Source] = ()
    computed: Sequence[Computed] = ()


class ChosenRules(NamedTuple):
    """The rules of a backward pass.

    Attributes:
        of_sets: per set, the number of its rule.
        terms: the rules whose derivatives leave something for parameters, each with the arena where that lies, in the
            order in which the sets come.
        kinds: what runs in batches.
        reads: the parameters whose values are needed.
        has_parameters: whether some nodes are parameters.
    """

    of_sets: np.ndarray
    terms: list[tuple[GradientRule, int]]
    kinds: frozenset[int]
    reads: frozenset[ParameterSpec]
    has_parameters: bool


class Rules:
    """The rules that a type table's graphs have met, numbered."""

    def __init__(self, table: TypeTable) -> None:
        self._table = table
        self.rules: list[GradientRule] = []
        self.of_kinds: dict[int, GradientRule] = {}
        self._numbers: dict[Any, int] = {}
        self._adding: dict[np.dtype, int] = {}
        self._chosen: dict[Any, ChosenRules] = {}
        self._rules, self._given, self._computed = (GrowingTable(kind) for kind in (RULE, SOURCE, COMPUTED))
        self._windows: np.ndarray | None = None
        self._directory: ArrayTable[RuleTables] | None = None
        self._flow_tables: ArrayTable[Any] | None = None

    @property
    def flow_tables(self) -> np.ndarray:
        """Directory of the `flow.FlowTables` of all types whose sets are known."""
        table, known, stops = self._table, self._flow_tables, stopping_views()
        sets = table.live_outputs.tables
        if (
            known is None
            or known.tables[0] is not table.holds_parameters
            or known.tables[2] is not stops
            or known.tables[5] is not sets.start
        ):
            columns = table.holds_parameters, table.ends_gradients, stops, table.singles, table.lists
            known = self._flow_tables = ArrayTable((*columns, *sets))
        return known.entries

    @property
    def tables(self) -> np.ndarray:
        """Directory of the `RuleTables`."""
        columns, known = self._table.windows.columns(), self._directory
        if known is None or self._windows is not columns or len(known.tables.rules) < len(self.rules):
            windows, view_stops = self._table.windows, stopping_views()
            stopped = np.zeros(len(columns), np.bool_)
            of_views = self._table.view_windows[: len(view_stops)]
            stopped[of_views[view_stops[: len(of_views)] & (of_views >= 0)]] = True
            before = _NO_FLAGS if known is None else known.tables.of_gradients
            of_gradients = np.append(before, np.array(windows.of_gradients[len(before) :], np.bool_))
            rules, given, computed = self._rules.entries, self._given.entries, self._computed.entries
            known = self._directory = ArrayTable(RuleTables(rules, given, computed, columns, stopped, of_gradients))
            self._windows = columns
        return known.entries

    def choose(self, present: np.ndarray, saved: Mapping[int, Saved]) -> ChosenRules:
        """The rules for sets that nodes have.

        Args:
            present: of records `Present`.
            saved: what the forward run has saved, per type.
        """
        sets, plain = self._table.live_outputs.sets, current_options().plain
        of_saved = tuple(sets[number].kind in saved for number in present["set"].tolist()) if saved else ()
        key = present.tobytes(), plain, of_saved
        found = self._chosen.get(key)
        if found is None:
            if len(self._chosen) >= MOST:
                self._chosen.clear()
            found = self._chosen[key] = self._choose(dict(present.tolist()), saved, plain)
        return found

    def _choose(self, operands: Mapping[int, int], saved: Mapping[int, Saved], plain: bool) -> ChosenRules:
        sets, bound = self._table.live_outputs.sets, self._table.bound
        keys = [(number, bits, sets[number].kind in saved, plain) for number, bits in operands.items()]
        new = {key: self._found(*key[:2], saved.get(sets[key[0]].kind)) for key in keys if key not in self._numbers}
        if new:
            self._add(new)
        of_sets = np.full(1 + max(operands), -1, np.int64)
        of_sets[list(operands)] = [self._numbers[key] for key in keys]
        rules = [self.rules[self._numbers[key]] for key in keys]
        kinds = {rule.runs for rule in rules if rule.runs >= 0}
        kinds |= {self._adding[bound[rule.kind].type.out.dtype] for rule in rules}
        reads = frozenset[ParameterSpec]().union(*(rule.how.reads for rule in rules if rule.how is not None))
        has_parameters = any(bound[rule.kind].type.op is PARAMETER for rule in rules)
        windows = self._table.windows.windows
        terms = [(rule, windows[rule.own].arena) for rule in rules if rule.own >= 0 and rule.how and rule.how.terms]
        return ChosenRules(of_sets, terms, frozenset(kinds), reads, has_parameters)

    def _add(self, new: Mapping[Any, _Found]) -> None:
        """Add rules, by their keys."""
        table = self._table
        kinds = [table.live_outputs.sets[key[0]].kind for key in new]
        types = [table.bound[kind] for kind in kinds]
        dtypes = [dtype for dtype in dict.fromkeys(type.type.out.dtype for type in types) if dtype not in self._adding]
        adding = [DerivedType(adding_rows(dtype, table.backend), 0) for dtype in dtypes]
        runs = [one.runs for one in new.values() if one.runs is not None]
        numbers = dict(zip((*adding, *runs), table.derived((*adding, *runs)), strict=True))
        self._adding |= {dtype: numbers[one] for dtype, one in zip(dtypes, adding, strict=True)}
        given, computed, made, rules = list[Source](), list[Computed](), list[Rule](), list[GradientRule]()
        for (key, one), kind, type in zip(new.items(), kinds, types, strict=True):
            ends = len(self._given) + len(given), len(self._computed) + len(computed)
            given += one.given
            computed += one.computed
            own = -1 if one.own < 0 else table.windows.windows[one.own].arena
            runs_as = -1 if one.runs is None else numbers[one.runs]
            made.append(
                Rule(
                    one.role, runs_as, type.window, own, ends[0], ends[0] + len(one.given), ends[1],
                    ends[1] + len(one.computed), type.type.op.payload, type.type.op.singles,
                    self._adding[type.type.out.dtype],
                )
            )  # fmt: skip
            rules.append(GradientRule(key[0], kind, one.own, runs_as, one.how))
        with signals_deferred():
            first = len(self.rules)
            self._given.append([records(given, SOURCE)])
            self._computed.append([records(computed, COMPUTED)])
            self._rules.append([records(made, RULE)])
            self.rules += rules
            self.of_kinds |= {rule.runs: rule for rule in rules if rule.runs >= 0}
            self._numbers |= {key: first + at for at, key in enumerate(new)}

    def _found(self, number: int, bits: int, saved: Saved | None) -> _Found:
        """How gradients flow into a set of outputs on to operands, a bit each."""
        kind = self._table.live_outputs.sets[number].kind
        type: BoundType = self._table.bound[kind]
        if self._table.is_source[kind]:
            return _Found(NOTHING)
        return self._of_nodes(type, number, bits, saved)

    def _of_nodes(self, type: BoundType, number: int, bits: int, saved: Saved | None) -> _Found:
        """A derivative of every node by itself."""
        table, windows = self._table, self._table.windows
        slots = sum(not isinstance(operand, ParameterSpec) for operand in type.type.operands)
        needed = [bool(bits >> min(slot, 62) & 1) for slot in range(slots)]
        needed = needed if type.type.lists else table.live_outputs.needed(number, needed)
        how = compiled(type, needed, saved is not None, table.live_outputs.sets[number].live, table.backend)
        if type.type.lists:
            return self._over_lists(type, how)
        if how.program is None:
            return _Found(NOTHING, how=how)
        own = windows.own(how.width, type.type.out.dtype)
        computed = [
            _NOWHERE if place is None else Computed(windows.part(own, place.column, place.spec.size), 0, 0)
            for place in how.operands
        ]
        given = []
        for source, which in how.given:
            if source is Given.SAVED:
                assert saved is not None
                column, spec = saved.how.places[which]
                which = windows.part(saved.window, column, spec.size)
            given.append(Source(int(source), which))
        return _Found(COMPUTE, own, DerivedType(how.program, own), how, given, computed)

    def _over_lists(self, type: BoundType, how: CompiledDerivative) -> _Found:
        """The derivative of an op over lists."""
        given = [Source(int(source), which) for source, which in how.given]
        computed = []
        for slot, place in enumerate(how.operands):
            if place is None:
                computed.append(_NOWHERE)
            elif place.column < 0:
                computed.append(Computed(type.window + GRADIENT, 1, 1))
            else:
                window = self._table.windows.own(place.spec.size, place.spec.dtype)
                computed.append(Computed(window, int(slot >= type.type.op.singles and not place.spec.each), 0))
        runs = None if how.program is None else DerivedType(how.program, 0)
        return _Found(OVER_LISTS if any(how.operands) else NOTHING, -1, runs, how, given, computed)


def stopping_views() -> np.ndarray:
    """Per code of a view, whether gradients end there."""
    global _stops
    known = _stops
    if len(known) < len(VIEWS):
        _stops = known = np.append(known, [stops(view) for view in VIEWS[len(known) :]])
    return known


_stops = np.zeros(1, np.bool_)  # code 0 is no view


def rules_of(table: TypeTable) -> Rules:
    """The one collection of a table."""
    table.rules = table.rules or Rules(table)
    return table.rules
