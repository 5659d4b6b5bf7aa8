"""From recorded columns to a plan: operands found, the graph that the policy sees, batches as it has scheduled them."""

from __future__ import annotations

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.memory.plan.columns import NodeColumns, TypeColumns, nodes_in, types_in
from edbatch.memory.plan.planner import extend_plan
from edbatch.policy.topology import successors

UNKNOWN = -2  # a type or a view that the table has not seen


@compiled(small=True)
def decode(
    first: int, base: int, integer: int, recorded: np.ndarray, operands: np.ndarray, integers: np.ndarray,
    own_integers: np.ndarray, node_tables: np.ndarray, type_tables: np.ndarray,
) -> int:  # fmt: skip
    """Number the types of nodes, put their operands, and where their integers are, in `args`, and take the integers.

    Args:
        first: the number of the first of these nodes, which are the graph's last.
        base, integer: where in `args` theirs begin, and where the first of their integers is.
        recorded, operands, integers: theirs, see `graph.columns.Recorded`; own_integers: the graph's, with room.
        node_tables, type_tables: directories of `NodeColumns`, where these are filled in, and of `TypeColumns`.

    Returns:
        How many operands were read; `UNKNOWN` if the table has to learn something first; anything else but all means
        that the columns are damaged.
    """
    types, starts, counts, args, _ = nodes_in(node_tables)
    known = types_in(type_tables)
    numbers, n_operands, view_windows = known.numbers, known.n_operands, known.view_windows
    n_integers = integer + len(integers)
    for id in recorded:
        if id >= len(numbers) or numbers[id] < 0:
            return UNKNOWN
    for i in range(len(operands)):
        code = operands[i] >> 32
        if code and (code >= len(view_windows) or view_windows[code] < 0):
            return UNKNOWN
    at, to = 0, base
    own_integers[integer:n_integers] = integers
    for node in range(first, len(types)):
        kind = types[node] = numbers[recorded[node - first]]
        n = n_operands[kind]
        if n < 0:
            if at >= len(operands):
                return -1
            n = operands[at]
            at += 1
        starts[node], counts[node] = to, n
        if n < 0 or at + n > len(operands) or integer + known.n_integers[kind] > n_integers:
            return -1
        for j in range(at, at + n):
            if operands[j] & 0xFFFFFFFF >= node:  # not recorded before it
                return -1
            args[to] = operands[j]
            to += 1
        at += n
        for _ in range(known.n_integers[kind]):
            args[to] = integer
            integer += 1
            to += 1
    return at if integer == n_integers else -1


_Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
Contracted = tuple[*_Arrays, *_Arrays]


@compiled(small=True)
def contract(first: int, end: int, node_tables: np.ndarray, type_tables: np.ndarray) -> Contracted:
    """The graph of what has to be scheduled: no sources, nothing that has run already.

    Args:
        first, end: its first node, and the node after its last.
        node_tables, type_tables: directories of `NodeColumns` and of `TypeColumns`.

    Returns:
        present: the types that occur, in the order in which the graph has them: their numbers follow from what the
            process has seen, and no order of batches, rows or sums may.
        nodes: its nodes, counted from `first`, by their ids; but an operand with a higher id (a part that was split
            off, see `split`) stands before its first user.
        kinds: per node the place of its type in `present`.
        indptr, operands: their operands, as positions in `nodes`.
        order: operands before their users.
        user_indptr, users: who reads them, see `policy.typed_graph.Successors`.
    """
    columns, is_source = nodes_in(node_tables), types_in(type_tables).is_source
    types, starts, counts = columns.types[first:end], columns.starts[first:end], columns.counts[first:end]
    args = columns.args
    position = np.full(len(types), -1, np.int32)
    nodes = np.empty(len(types), np.int32)
    indptr = np.zeros(len(types) + 1, np.int64)
    operands = np.empty(len(args), np.int32)
    n, used = 0, 0
    waiting = np.empty(len(types), np.int32)  # a node, an operand that it waits for, an operand of that ...
    for i in range(len(types)):
        if is_source[types[i]] or position[i] >= 0:
            continue
        depth = 0
        waiting[0] = i
        while depth >= 0:
            node = waiting[depth]
            missing = -1
            for j in range(starts[node], starts[node] + counts[node]):
                operand = (args[j] & 0xFFFFFFFF) - first
                if operand >= 0:
                    if position[operand] >= 0:
                        operands[used] = position[operand]
                        used += 1
                    elif not is_source[types[operand]]:
                        missing = operand
                        break
            if missing >= 0:
                used = indptr[n]
                depth += 1
                waiting[depth] = missing
            else:
                position[node] = n
                nodes[n] = node
                n += 1
                indptr[n] = used
                depth -= 1
    kinds, present = by_appearance(types[nodes[:n]], len(is_source))
    indptr, operands, order = indptr[: n + 1].copy(), operands[:used].copy(), np.arange(np.int32(n), dtype=np.int32)
    found = present, nodes[:n].copy(), kinds, indptr, operands, order
    return *found, *successors(indptr, operands)


@compiled(small=True)
def by_appearance(types: np.ndarray, n_types: int) -> tuple[np.ndarray, np.ndarray]:
    """Number types in the order in which nodes have them: per node its type's number, and the types."""
    number = np.full(n_types, -1, np.int32)
    present = np.empty(n_types, np.int32)
    kinds = np.empty(len(types), np.int32)
    n = 0
    for v in range(len(types)):
        kind = types[v]
        if number[kind] < 0:
            number[kind] = n
            present[n] = kind
            n += 1
        kinds[v] = number[kind]
    return kinds, present[:n].copy()


FEW = 63  # nodes: as many as a set in an integer may have
Planned = tuple[int, bool]


@compiled(small=True)
def plan_batches(
    chosen: np.ndarray, order: np.ndarray, offsets: np.ndarray, first: int, n_windows: int, node_tables: np.ndarray,
    type_tables: np.ndarray, plan_tables: np.ndarray, arenas: np.ndarray,
) -> Planned:  # fmt: skip
    """Append batches to a graph's plan, and before them the sources among the pending nodes, from `first` on.

    Args:
        chosen: the pending nodes that are no sources, counted from `first`.
        order, offsets: their batches, as positions in `chosen`.
        n_windows, ...: see `planner.extend_plan`.

    Returns:
        How many batches are of sources; whether there is room for all rows in their arenas.
    """
    nodes, is_source = nodes_in(node_tables), types_in(type_tables).is_source
    whole, begins, n_sources = with_sources(chosen[order], offsets, nodes.types[first:], is_source)
    whole += np.int32(first)
    return n_sources, extend_plan(whole, begins, first, n_windows, node_tables, type_tables, plan_tables, arenas)


@compiled(small=True)
def plan_few(
    splits: bool, first: int, n_windows: int, node_tables: np.ndarray, type_tables: np.ndarray,
    plan_tables: np.ndarray, arenas: np.ndarray,
) -> Planned:  # fmt: skip
    """The same for at most `FEW` pending nodes in the order of recording, each by itself, if nothing is lost by that.

    Args:
        splits: whether cells may be split.

    Returns:
        The same; -1 for the batches of sources: there may be a schedule of fewer batches, nothing is done.
    """
    chosen = np.empty(FEW, np.int32)
    n = _in_recorded_order(nodes_in(node_tables), types_in(type_tables), first, splits, chosen)
    if n < 0:
        return -1, True
    offsets = np.arange(n + 1)
    return plan_batches(chosen, offsets[:n], offsets, first, n_windows, node_tables, type_tables, plan_tables, arenas)


@compiled(small=True)
def _in_recorded_order(nodes: NodeColumns, types: TypeColumns, first: int, splits: bool, order: np.ndarray) -> int:
    """Fill in the nodes from `first` on that are no sources, counted from there, and return how many there are.

    -1 if there may be a schedule of fewer batches: there is none if of each type's nodes each depends on the one before
    it, and of types that may be split there is one node, which never is.
    """
    below = np.empty(FEW, np.int64)  # the nodes that each depends on, as a set
    n = 0
    for v in range(len(nodes.types) - first):
        kind, begin = nodes.types[first + v], nodes.starts[first + v]
        depends = np.int64(0)
        for i in range(begin, begin + nodes.counts[first + v]):
            source = (nodes.args[i] & 0xFFFFFFFF) - first
            if source >= 0:
                depends |= below[source] | (np.int64(1) << source)
        below[v] = depends
        if types.is_source[kind]:
            continue
        for u in range(v - 1, -1, -1):
            if nodes.types[first + u] == kind:
                if (splits and types.may_split[kind]) or not (depends >> u) & 1:
                    return -1
                break
        order[n] = v
        n += 1
    return n


@compiled(small=True)
def with_sources(
    order: np.ndarray, offsets: np.ndarray, types: np.ndarray, is_source: np.ndarray
) -> tuple[np.ndarray, np.ndarray, int]:
    """A schedule with the sources before it, in a batch for each type, in the order in which the graph has them.

    Args:
        order, offsets: the batches of nodes that are no sources.

    Returns:
        All nodes batch after batch; where batches begin; the number of batches of sources.
    """
    sources = np.flatnonzero(is_source[types])
    if len(sources) == 0:  # as where a graph goes on
        return order, offsets, 0
    kinds, present = by_appearance(types[sources], len(is_source))
    n, n_sources = len(sources), len(present)
    whole = np.empty(n + len(order), np.int32)
    begins = np.zeros(n_sources + len(offsets), np.int64)
    begins[1 : n_sources + 1] = np.cumsum(np.bincount(kinds))
    next_of = begins[:n_sources].copy()
    for i in range(n):
        whole[next_of[kinds[i]]] = sources[i]
        next_of[kinds[i]] += 1
    whole[n:] = order
    begins[n_sources:] = offsets + n
    return whole, begins, n_sources
