"""The windows of values and of their gradients, which every way back has, with room for those of what it computes."""

from __future__ import annotations

import numpy as np

from edbatch.base.records import joined
from edbatch.graph.cell.gradient_sum import stops
from edbatch.graph.views import VIEWS
from edbatch.memory.plan.addresses import COLUMNS
from edbatch.runtime.type_table import TypeTable

_ROOM = 64


class StaticWindows:
    """Those of a type table, as long as it has no new ones.

    Args:
        table: of the graphs.

    Attributes:
        n_windows, n_arenas: of values.
        columns: records `Columns`: of the values, of their gradients, of what was filled in last.
        scattered: per window of values, whether the entries of its rows do not lie side by side.
        stopped: per window of values, whether no gradient flows to what is read through it: each view has its own.
        arenas: per window of values, its arena.
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
        begin = 2 * self.n_windows
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
