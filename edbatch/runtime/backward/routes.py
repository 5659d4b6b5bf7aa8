"""The routes that a type table's graphs have gone back by, to be gone again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from edbatch.compiling.directory import Directory
from edbatch.graph.options import current_options
from edbatch.runtime.backward.route import Route
from edbatch.runtime.backward.saving import Saved
from edbatch.runtime.backward.static_windows import StaticWindows, stopping_views
from edbatch.runtime.type_table import TypeTable

if TYPE_CHECKING:
    from edbatch.runtime.backward.way import Way

MOST = 256


class Routes:
    """Those of a table, while it has no new windows.

    Args:
        table: of the graphs.

    Attributes:
        windows: of values and gradients.
    """

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
        return (route, held) if held is not None and route.fill() else None


def routes_of(table: TypeTable) -> Routes:
    """The one collection of a table."""
    if table.routes is None:
        table.routes = Routes(table)
    found: Routes = table.routes
    return found
