"""What compiled passes read of a route."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.compiling.directory import BOOL, INT64, table
from edbatch.memory.plan.addresses import ROWS
from edbatch.runtime.backward.records import BUFFER, COMPUTED, RULE, SOURCE


class RouteTables(NamedTuple):
    """Rules, windows and memory.

    Attributes:
        rules: per set, a record `Rule`.
        given: what derivatives are given, of records `Source`.
        computed: per operand of a set's type, where its derivative leaves the operand's gradient: records `Computed`.
        scattered: per window of values, whether the entries of its rows do not lie side by side.
        stopped: per window of values, whether no gradient flows to what is read through it. A batch reads some of its
            operands stopped and others not: each that differs is seen through a window of its own.
        arena_of: per window of values, its arena.
        memory: the arenas of values, of their gradients, and the buffers, of records `Rows`; filled in.
        buffers: of records `Buffer`.
        begins: per arena of values, and then per buffer, where it begins in the memory of the way back, in entries; -1:
            it has none there. Filled in.
    """

    rules: np.ndarray
    given: np.ndarray
    computed: np.ndarray
    scattered: np.ndarray
    stopped: np.ndarray
    arena_of: np.ndarray
    memory: np.ndarray
    buffers: np.ndarray
    begins: np.ndarray


@compiled(small=True)
def route_in(route: np.ndarray) -> RouteTables:
    """The tables of a directory of them."""
    return RouteTables(
        table(route, 0, RULE), table(route, 1, SOURCE), table(route, 2, COMPUTED), table(route, 3, BOOL),
        table(route, 4, BOOL), table(route, 5, INT64), table(route, 6, ROWS), table(route, 7, BUFFER),
        table(route, 8, INT64),
    )  # fmt: skip
