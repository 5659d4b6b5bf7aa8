"""The compiled passes that find equal nodes.

Where it takes time, indices are unsigned, or Numba's code would see whether each counts from the end; see `_at`.
"""

from __future__ import annotations

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.compiling.directory import INT32, table
from edbatch.memory.plan.columns import NodeColumns, nodes_in, types_in

NONE = -1
SHORT = 0x7FFFFFFF  # no product has more than 62 bits, which Python computes as compiled code does
FACTOR, STEP = 0x2C1B3C6D, 0x1E3779B0

_at = np.uint64


@compiled(small=True)
def share_nodes(
    seen: int, first: int, base: int, gone: int, node_tables: np.ndarray, type_tables: np.ndarray,
    recorded_tables: np.ndarray, places: np.ndarray,
) -> None:  # fmt: skip
    """Find, for each node from `first` on, what stands for it; of those that others stand for nothing is computed.

    Args:
        seen: how many nodes are recorded already; from there to `first` are parts that were split off.
        base: where the integers of the nodes from `first` on begin.
        gone: the type of nodes that others stand for.
        node_tables: directory of the `NodeColumns`; operands are replaced by what stands for them.
        type_tables: directory of the `TypeColumns`.
        recorded_tables: directory of `sharing.Recorded`, with room for these nodes; filled in.
        places: a hash table of the nodes before `first`, with room for all; the others are entered.
    """
    nodes, types, recorded = nodes_in(node_tables), types_in(type_tables), nodes_in(recorded_tables)
    stands, hashes = table(recorded_tables, 4, INT32), table(recorded_tables, 5, INT32)
    args, n, last = nodes.args, len(nodes.types), len(places) - 1
    moved = len(recorded.args) - len(args)
    recorded.args[base + moved :] = args[base:]
    recorded.types[seen:first], stands[seen:first] = NONE, np.arange(seen, first)
    recorded.types[first:n], recorded.counts[first:n] = nodes.types[first:], nodes.counts[first:n]
    for node in range(first, n):
        kind, begin = nodes.types[_at(node)], nodes.starts[_at(node)]
        payload = begin + nodes.counts[_at(node)]
        end = payload + types.payloads[_at(kind)]
        recorded.starts[_at(node)] = begin + moved
        stands[_at(node)] = node
        if types.is_source[_at(kind)]:
            continue
        hashed, factor = int(kind), FACTOR
        for at in range(begin, payload):
            arg = args[_at(at)] = _replaced(args[_at(at)], stands)
            hashed ^= _shortened(arg) * factor
            factor = (factor + STEP) & SHORT
        for at in range(payload, end):
            hashed ^= _shortened(args[_at(at)]) * factor
            factor = (factor + STEP) & SHORT
        hashed = _mixed(hashed)
        hashes[_at(node)] = hashed
        place = hashed & last
        while places[_at(place)] != NONE:
            other = places[_at(place)]
            if hashes[_at(other)] == hashed and _is_equal(nodes, node, end, recorded, other, stands):
                break
            place = (place + 1) & last
        if places[_at(place)] == NONE:
            places[_at(place)] = node
        else:
            stands[_at(node)] = other
            nodes.types[_at(node)] = gone
            nodes.counts[_at(node)] = 0


@compiled(small=True)
def enter(first: int, end: int, type_tables: np.ndarray, recorded_tables: np.ndarray, places: np.ndarray) -> None:
    """Enter the nodes from `first` to `end`, which are known to differ, into a hash table that has room."""
    is_source, kinds = types_in(type_tables).is_source, nodes_in(recorded_tables).types
    stands, hashes, last = table(recorded_tables, 4, INT32), table(recorded_tables, 5, INT32), len(places) - 1
    for node in range(first, end):
        if kinds[node] == NONE or stands[node] != node or is_source[kinds[node]]:
            continue
        place = hashes[node] & last
        while places[place] != NONE:
            place = (place + 1) & last
        places[place] = node


@compiled(small=True, inline="always")
def _replaced(arg: int, stands: np.ndarray) -> int:
    """An operand, as what stands for it."""
    read = arg & 0xFFFFFFFF
    return arg + stands[_at(read)] - read


@compiled(small=True, inline="always")
def _shortened(arg: int) -> int:
    """31 bits of an integer: of an operand the node, and the view above it mixed in."""
    return (arg ^ (arg >> 27)) & SHORT


@compiled(small=True, inline="always")
def _mixed(hashed: int) -> int:
    """The hash, of 31 bits: an exclusive or of products, of which none waits for another, mixed once."""
    return ((((hashed ^ (hashed >> 31)) & SHORT) * FACTOR) >> 16) & SHORT


@compiled(small=True, inline="always")
def _is_equal(nodes: NodeColumns, node: int, end: int, recorded: NodeColumns, other: int, stands: np.ndarray) -> bool:
    """Whether a node, whose operands are replaced and whose integers reach to `end`, is what another one is."""
    begin, at, n = nodes.starts[_at(node)], recorded.starts[_at(other)], nodes.counts[_at(node)]
    if recorded.types[_at(other)] != nodes.types[_at(node)] or recorded.counts[_at(other)] != n:
        return False
    for k in range(n):
        if nodes.args[_at(begin + k)] != _replaced(recorded.args[_at(at + k)], stands):
            return False
    for k in range(n, end - begin):  # noqa: SIM110 (not what compiled code is written in)
        if nodes.args[_at(begin + k)] != recorded.args[_at(at + k)]:
            return False
    return True
