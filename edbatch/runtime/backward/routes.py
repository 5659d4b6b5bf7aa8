"""The routes that a type table's graphs have gone back by, to be gone again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from edbatch.base.records import joined
from edbatch.compiling.directory import Directory
from edbatch.graph.cell.gradient_sum import stops
from edbatch.graph.options import current_options
from edbatch.graph.views import VIEWS
from edbatch.memory.plan.addresses import COLUMNS
from edbatch.runtime.backward.route import Route
from edbatch.runtime.backward.saving import Saved
from edbatch.runtime.type_table import TypeTable

if TYPE_CHECKING:
    from edbatch.runtime.backward.plan import Way

MOST = 256
_ROOM = 64


class StaticWindows:
    """The windows of values and of their gradients, as long as a type table has no new ones, and room for others.

    Attributes:
        n_windows, n_arenas: of values.
        columns: records `Columns`: of the values, of their gradients, of what was filled in last.
        scattered, stopped, arenas: per window of values, see `RouteTables`.
    """

    def __init__(self, table: TypeTable) -> None:
        columns, view_stops = table.windows.columns(), stopping_views()
        self.n_windows, self.n_arenas = len(columns), len(table.windows.layouts)
        of_gradients = columns.copy()
        of_gradients["arena"] += self.n_arenas
        self.columns = joined(joined(columns, of_gradients), np.zeros(_ROOM, COLUMNS))
        self._filled = self.columns[:0]
        self.scattered = columns["scattered"] >= 0
        self.arenas = columns["arena"].copy()
        self.stopped = np.zeros(self.n_windows, np.bool_)
        of_views = table.view_windows[: len(view_stops)]
        self.stopped[of_views[view_stops[: len(of_views)] & (of_views >= 0)]] = True

    def fill(self, columns: np.ndarray) -> None:
        """Have these after the windows of gradients."""
        if columns is self._filled:
            return
        begin, self._filled = 2 * self.n_windows, self.columns[:0]  # at once: an interrupt may leave some of these
        if begin + len(columns) > len(self.columns):
            self.columns = joined(self.columns[:begin], np.zeros(2 * len(columns), COLUMNS))
        self.columns[begin : begin + len(columns)] = columns
        self.columns[begin + len(columns) :] = 0  # a recording is found by all of them
        self._filled = columns


def stopping_views() -> np.ndarray:
    """Per code of a view, whether gradients end there."""
    global _stops
    known = _stops
    if len(known) < len(VIEWS):
        _stops = known = np.append(known, [stops(view) for view in VIEWS[len(known) :]])
    return known


_stops = np.zeros(1, np.bool_)  # code 0 is no view


class Routes:
    """The routes of a type table, as long as it has no new windows: those are of values and gradients."""

    windows: StaticWindows

    def __init__(self, table: TypeTable) -> None:
        self._table = table
        self._columns: np.ndarray | None = None
        self._known: dict[Any, Route] = {}
        self._ways: Directory[Any] | None = None

    @property
    def ways(self) -> np.ndarray:
        """Directory of the `reach.Ways` of all types whose sets are known."""
        table, known, stops = self._table, self._ways, stopping_views()
        sets = table.output_sets.tables
        if (
            known is None
            or known.tables[0] is not table.holds_parameters
            or known.tables[2] is not stops
            or known.tables[5] is not sets.start
        ):
            columns = table.holds_parameters, table.ends_gradients, stops, table.singles, table.lists
            known = self._ways = Directory((*columns, *sets))
        return known.entries

    def find(self, present: np.ndarray, saved: Mapping[int, Saved]) -> tuple[Route, list[Any]]:
        """A route, prepared, and what is to be held while it is gone.

        Args:
            present: of records `Present`.
            saved: see `Route`.
        """
        columns, sets = self._table.windows.columns(), self._table.output_sets.sets
        if self._columns is not columns:
            self._known.clear()
            self.windows = StaticWindows(self._table)
            self._columns = columns
        of_saved = tuple(sets[number].kind in saved for number in present["set"].tolist()) if saved else ()
        key = present.tobytes(), current_options().plain, of_saved
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= MOST:
                self._known.clear()
            found = self._known[key] = Route(self._table, self.windows, dict(present.tolist()), saved)
        return found, found.prepare()

    def again(self, way: Way) -> tuple[Route, list[Any]] | None:
        """The same for a way that was planned once and is gone again; None: windows or programs are others now."""
        route = way.route()
        if route is None or route.windows is not self.windows or self._columns is not self._table.windows.columns():
            return None
        held = way.ready.held(self._table.derivative_programs)
        self.windows.fill(route.columns)
        return (route, held) if held is not None and self.windows.columns is route.memory.tables.windows else None


def routes_of(table: TypeTable) -> Routes:
    """The one collection of a table."""
    table.routes = table.routes or Routes(table)
    return table.routes
