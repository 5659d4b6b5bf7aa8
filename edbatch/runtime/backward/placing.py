"""Where the gradients of values, and what is computed on the way back, lie: side by side in one piece of memory."""

from __future__ import annotations

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.runtime.backward.out import Out
from edbatch.runtime.backward.records import NODES, OWN, SAVED, RouteTables, route_in

LINE = 16  # entries: what is computed of a set begins with a line of the cache


@compiled(small=True)
def measure(
    plan: Out, rows: np.ndarray, touched: np.ndarray, values: np.ndarray, gradients: np.ndarray, width: int,
    route: RouteTables,
) -> tuple[int, int]:  # fmt: skip
    """Fill in where everything begins.

    Args:
        plan: what is gone back through.
        rows: per set, how many nodes have it.
        touched: per arena of values, whether gradients are read or written there.
        values, gradients: the arenas, records `Rows`.
        width: bytes of an entry.
        route: of the way back.

    Returns:
        How many entries hold gradients of values, which come first, and how many there are.
    """
    n, begins, end = len(values), route.begins, 0
    begins[:] = -1
    for arena in range(n):
        if touched[arena] and gradients[arena]["address"] == 0:
            begins[arena] = end
            end += _lines(values[arena]["used"] * (values[arena]["stride"] // width))
    of_values = end
    for at in range(len(route.buffers)):
        buffer = route.buffers[at]
        if buffer["rows"] == SAVED:
            continue
        most = rows[buffer["set"]]
        if buffer["rows"] != OWN:
            most = _most(plan, buffer["kind"], buffer["rows"])
        begins[n + at] = end
        end += _lines(most * buffer["width"])
    return of_values, end


@compiled(small=True)
def _lines(entries: int) -> int:
    return -(-entries // LINE) * LINE


@compiled(small=True)
def _most(plan: Out, kind: int, rows: int) -> int:
    """The most nodes that a batch of a type has, or elements that its operand `rows` has."""
    most = np.int64(1)
    for at in range(len(plan.batches)):
        if plan.batches[at]["type"] == kind:
            n = np.int64(plan.batches[at]["n"])
            if rows != NODES:
                n = np.int64(plan.operands[plan.batches[at]["operand"] + rows]["n"])
            most = max(most, n)
    return int(most)


@compiled(small=True)
def place(
    base: int, width: int, values: np.ndarray, gradients: np.ndarray, begins: np.ndarray, route_tables: np.ndarray
) -> None:
    """Fill in the addresses of what has been measured, and of the values.

    Args:
        base: address of the memory.
        width: bytes of an entry.
        values, gradients: the arenas, records `Rows`; those of gradients are filled in, too.
        begins: what was measured, see `RouteTables`.
        route_tables: directory of `RouteTables`.
    """
    route = route_in(route_tables)
    memory, n = route.memory, len(values)
    for arena in range(n):
        if begins[arena] >= 0:
            gradients[arena]["address"] = base + width * begins[arena]
            gradients[arena]["stride"] = values[arena]["stride"]
            gradients[arena]["used"] = values[arena]["used"]
        memory[arena]["address"], memory[arena]["stride"] = values[arena]["address"], values[arena]["stride"]
        memory[n + arena]["address"], memory[n + arena]["stride"] = gradients[arena]["address"], values[arena]["stride"]
    for at in range(len(route.buffers)):
        if begins[n + at] >= 0:
            memory[2 * n + at]["address"] = base + width * begins[n + at]
            memory[2 * n + at]["stride"] = width * route.buffers[at]["width"]
