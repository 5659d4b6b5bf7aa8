"""The compiled passes that find equal nodes."""

from __future__ import annotations

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.compiling.directory import INT32, table
from edbatch.memory.plan.columns import NodeColumns, TypeColumns, nodes_in, types_in

# A place of the table holds the hash (31 bits), and the node in the lower 32; nothing is there: below zero.


@compiled(small=True)
def share_nodes(
    first: int, gone: int, node_tables: np.ndarray, type_tables: np.ndarray, recorded_tables: np.ndarray,
    places: np.ndarray,
) -> None:  # fmt: skip
    """Find, for each node from `first` on, what stands for it; of those that others stand for nothing is computed.

    Args:
        gone: the type of nodes that others stand for.
        node_tables: directory of the `NodeColumns`; operands are replaced by what stands for them.
        type_tables: directory of the `TypeColumns`.
        recorded_tables: directory of `sharing.Recorded`, whose `stands` is filled in.
        places: a hash table of the nodes before `first`, with room for all; the others are entered.
    """
    nodes, types, recorded = nodes_in(node_tables), types_in(type_tables), nodes_in(recorded_tables)
    stands = table(recorded_tables, 4, INT32)
    args, last = nodes.args, len(places) - 1
    for node in range(first, len(nodes.types)):
        kind, begin = nodes.types[node], nodes.starts[node]
        for at in range(begin, begin + nodes.counts[node]):
            read = args[at] & 0xFFFFFFFF
            args[at] += stands[read] - read
        stands[node] = node
        if types.is_source[kind]:
            continue
        end = begin + nodes.counts[node] + _integers(types, kind)
        hashed = int(kind)
        for at in range(begin, end):
            hashed = _mixed(hashed, args[at])
        place = hashed & last
        while places[place] >= 0:
            other = places[place] & 0xFFFFFFFF
            if places[place] >> 32 == hashed and _is_equal(nodes, node, end, recorded, other, stands):
                break
            place = (place + 1) & last
        if places[place] < 0:
            places[place] = (hashed << 32) | node
        else:
            stands[node] = other
            nodes.types[node] = gone
            nodes.counts[node] = 0


@compiled(small=True)
def enter(first: int, end: int, type_tables: np.ndarray, recorded_tables: np.ndarray, places: np.ndarray) -> None:
    """Enter the nodes from `first` to `end`, which are known to differ, into a hash table that has room."""
    types, recorded = types_in(type_tables), nodes_in(recorded_tables)
    stands, args, last = table(recorded_tables, 4, INT32), recorded.args, len(places) - 1
    for node in range(first, end):
        kind, begin = recorded.types[node], recorded.starts[node]
        if kind < 0 or stands[node] != node or types.is_source[kind]:
            continue
        hashed, n = int(kind), recorded.counts[node]
        for at in range(begin, begin + n + _integers(types, kind)):
            hashed = _mixed(hashed, _replaced(args[at], stands) if at < begin + n else args[at])
        place = hashed & last
        while places[place] >= 0:
            place = (place + 1) & last
        places[place] = (hashed << 32) | node


@compiled(small=True, inline="always")
def _integers(types: TypeColumns, kind: int) -> int:
    """How many integers nodes of a type have behind their operands."""
    return types.payloads[kind] if types.n_args[kind] >= 0 else 0


@compiled(small=True, inline="always")
def _replaced(arg: int, stands: np.ndarray) -> int:
    """An operand, as what stands for it."""
    read = arg & 0xFFFFFFFF
    return arg + stands[read] - read


@compiled(small=True, inline="always")
def _mixed(hashed: int, arg: int) -> int:
    """A hash of 31 bits and one integer more; no step of it has more than 63 bits."""
    product = (hashed ^ (arg & 0xFFFFFFFF)) * 0x2C1B3C6D + (arg >> 32) * 0x297A2D39
    return (product ^ (product >> 29)) & 0x7FFFFFFF


@compiled(small=True)
def _is_equal(nodes: NodeColumns, node: int, end: int, recorded: NodeColumns, other: int, stands: np.ndarray) -> bool:
    """Whether a node, whose operands are replaced and whose integers reach to `end`, is what another one is."""
    begin, at, n = nodes.starts[node], recorded.starts[other], nodes.counts[node]
    if recorded.types[other] != nodes.types[node] or recorded.counts[other] != n:
        return False
    for k in range(n):
        if nodes.args[begin + k] != _replaced(recorded.args[at + k], stands):
            return False
    for k in range(n, end - begin):  # noqa: SIM110 (not what compiled code is written in)
        if nodes.args[begin + k] != recorded.args[at + k]:
            return False
    return True
