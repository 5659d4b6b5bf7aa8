"""Whether variables can be ordered so that batched operands are adjacent and aligned, and one such order.

The paper's algorithm 2: adjacency by a PQ tree, `BroadcastConstraint`, `DecideNodesOrder`, `GetLeafOrder`. For operands
that name distinct variables it decides exactly: every order that fits is an order of the tree at each step, and a
contradiction between node orders cannot be resolved by other choices. So None means that no order exists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import NamedTuple

from edbatch.memory.layout.pq_tree import PQNode, PQTree

Permutation = tuple[
    int, ...
]  # of a node's children: position -> which stands there; (0, 1) or (1, 0): all, or reversed


class Demand(NamedTuple):
    """An operand (or result) that wants its variables adjacent, in the order of its batch.

    Attributes:
        op: number of the batched operation; the demands of one `op` are aligned with each other.
        variables: distinct; entry i belongs to operation i of the batch.
    """

    op: int
    variables: tuple[int, ...]


class Alignment:
    """Demands that can be met together; a value that is extended by further demands.

    Args:
        variables: all that demands may name; repeated ones count once.

    Attributes:
        tree: orders that meet each demand's adjacency; those that meet all demands are among them.
        demands: all that are met.

    Example:
        >>> first = Alignment([1, 2, 3]).extended([Demand(0, (3, 1))])
        >>> first.order(), first.extended([Demand(1, (3, 2))]).order()
        ([1, 3, 2], [1, 3, 2])
    """

    def __init__(self, variables: Iterable[int]) -> None:
        self.tree = PQTree(dict.fromkeys(variables))
        self.demands: list[Demand] = []
        self._orders: dict[int, Permutation] = {}

    def extended(self, demands: Sequence[Demand]) -> Alignment | None:
        """The alignment that meets these demands too; None if there is none."""
        wider = Alignment(())
        wider.tree = copy(self.tree)
        wider.demands = [*self.demands, *demands]
        if not all(wider.tree.reduce(demand.variables) for demand in demands):
            return None
        batches: dict[int, list[Demand]] = {}
        for demand in wider.demands:
            batches.setdefault(demand.op, []).append(demand)
        spanned = _broadcast(wider.tree, [batch for batch in batches.values() if len(batch) > 1])
        orders = None if spanned is None else _decided_orders(spanned)
        if orders is None:
            return None
        wider._orders = orders
        return wider

    def joined(self, groups: Sequence[Sequence[Demand]]) -> tuple[Alignment, list[int]]:
        """The alignment that meets these groups too, each as a whole, but for those that earlier ones leave no way.

        As many as there are at once; where that fails, first those of one half, then of the other.

        Returns:
            It, and which groups it does not meet.
        """
        met, left, waiting = self, list[int](), [range(len(groups))]
        while waiting:
            some = waiting.pop()
            wider = met.extended([demand for number in some for demand in groups[number]])
            if wider is not None:
                met = wider
            elif len(some) == 1:
                left += some
            else:
                waiting += [some[len(some) // 2 :], some[: len(some) // 2]]
        return met, left

    def conflict(self, demands: Sequence[Demand], last: int) -> list[int]:
        """A minimal part of demands that leaves one of them, which does not fit the others, no way: their numbers."""
        guilty = [number for number in range(len(demands)) if number != last]
        for number in reversed(guilty):
            others = [one for one in guilty if one != number]
            if self.extended([demands[one] for one in (*others, last)]) is None:
                guilty = others
        return guilty

    def order(self) -> list[int]:
        """`GetLeafOrder`: an order that meets all demands; smaller variables first where nothing else decides."""
        below: list[list[int]] = []  # per node, from the last on, its leaves in order
        for number in range(len(self.tree.nodes) - 1, -1, -1):
            node, order = self.tree.nodes[number], self._orders.get(number)
            parts = [below[number - child] for child in node.children]
            if order is not None:
                parts = [parts[at] for at in order] if len(order) > 2 else parts[:: 1 if order == (0, 1) else -1]
            elif node.kind == "P":
                parts.sort(key=min)
            elif node.kind == "Q" and min(parts[0]) > min(parts[-1]):
                parts.reverse()
            below.append([node.element or 0] if node.kind == "leaf" else [leaf for part in parts for leaf in part])
        return below[-1]


class _Part(NamedTuple):
    """A node of the subtree that a demand spans, its leaves as bits: bit i is entry i of the demand.

    Attributes:
        number: of the tree's node; several children of a Q node may be spanned, without the others.
        free: whether the children may be permuted; otherwise (also if there are two) they may be reversed.
        children: the spanned children's bits, in the tree's present order.
    """

    number: int
    free: bool
    children: list[int]

    def consecutive(self) -> Iterator[int]:
        """The sets of entries whose adjacency gives this node its form."""
        if self.free:
            yield sum(self.children)
        else:
            for left, right in zip(self.children, self.children[1:], strict=False):
                yield left | right


Parts = dict[int, _Part]  # of one demand, by the bits of all leaves below


def _broadcast(tree: PQTree[int], batches: list[list[Demand]]) -> list[list[Parts]] | None:
    """`BroadcastConstraint`: make the subtrees of a batch's operands isomorphic, until nothing changes.

    A set of entries that is consecutive in one operand of a batch has to be so in all of them.
    """
    while True:
        nodes = tree.nodes
        changed = False
        spanned = _spanned(nodes, batches)
        for batch, parts_of in zip(batches, spanned, strict=True):
            wanted = [{bits for part in parts.values() for bits in part.consecutive()} for parts in parts_of]
            everything = set().union(*wanted)
            for demand, present in zip(batch, wanted, strict=True):
                for bits in sorted(everything - present):
                    changed = True
                    if not tree.reduce(v for entry, v in enumerate(demand.variables) if bits >> entry & 1):
                        return None
        if not changed:
            return spanned


def _spanned(nodes: list[PQNode[int]], batches: list[list[Demand]]) -> list[list[Parts]]:
    """Per batch, per demand: the nodes of its subtree."""
    parents = [0] * len(nodes)
    leaves: dict[int | None, int] = {}
    for number, node in enumerate(nodes):
        for child in node.children:
            parents[child] = number
        if node.kind == "leaf":
            leaves[node.element] = number
    return [[_parts(nodes, parents, leaves, demand.variables) for demand in batch] for batch in batches]


def _parts(
    nodes: list[PQNode[int]], parents: list[int], leaves: dict[int | None, int], variables: tuple[int, ...]
) -> Parts:
    """Climb from the leaves; a node whose children are all spanned is spanned."""
    below = {leaves[variable]: 1 << entry for entry, variable in enumerate(variables)}
    queue = list(below)
    complete: dict[int, list[int]] = {}
    parts: Parts = {}
    for number in queue:  # grows
        parent = parents[number]
        if number == parent:  # the root
            break
        children = complete.setdefault(parent, [])
        children.append(number)
        if len(children) == len(nodes[parent].children):
            queue.append(parent)
            below[parent] = sum(below[child] for child in children)
    for number, children in complete.items():
        if len(children) > 1:  # numbers are in the order of the tree
            bits = [below[child] for child in sorted(children)]
            parts[sum(bits)] = _Part(number, nodes[number].kind == "P" and len(bits) > 2, bits)
    return parts


def _decided_orders(spanned: list[list[Parts]]) -> dict[int, Permutation] | None:
    """`DecideNodesOrder`: nodes that stand for the same entries have the same order; None if they cannot.

    Returns:
        The orders of those that stand for the same as another, where the first of those that depend on each other is
        as it is. No other choice of that changes how two of them are related.
    """
    orders: dict[int, Permutation] = {}
    related: dict[int, list[int]] = {}  # per node all that depend on each other, with it
    for first, *others in spanned:
        for parts in others:
            for bits, part in first.items():
                twin = parts[bits]
                if part.free:
                    carried = tuple(twin.children.index(child) for child in part.children)
                else:
                    carried = (0, 1) if part.children == twin.children else (1, 0)
                for number in (part.number, twin.number):
                    orders.setdefault(number, tuple(range(len(carried))))
                    related.setdefault(number, [number])
                wanted, found = _after(carried, orders[part.number]), orders[twin.number]
                if related[part.number] is not related[twin.number]:
                    turned = tuple(found.index(at) for at in wanted)
                    for number in related[twin.number]:
                        orders[number] = _after(orders[number], turned)
                        related[part.number].append(number)
                        related[number] = related[part.number]
                elif wanted != found:
                    return None
    return orders


def _after(second: Permutation, first: Permutation) -> Permutation:
    return tuple(second[at] for at in first)
