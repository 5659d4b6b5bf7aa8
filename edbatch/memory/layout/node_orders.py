"""Union-find over the orders of tree nodes: who decides whose order, and how it carries over."""

from __future__ import annotations

Permutation = tuple[int, ...]  # position -> number of the child that stands there


class NodeOrders:
    """Nodes whose orders depend on each other (the paper's algorithm 6, the extended union-find).

    The order of a node is a permutation of its children; that of a node which can only be reversed is (0, 1) or (1, 0).
    Each node knows a decider and the permutation that carries the decider's order over: order = carried * decider's.
    Relations compose along the way and are solved for permutations of any size. A contradiction is final: the relations
    of a class leave only its root's order open, and no choice of that changes how two of its nodes are related.

    Example:
        >>> orders = NodeOrders()
        >>> orders.relate(0, 1, (1, 2, 0)), orders.relate(1, 2, (1, 2, 0))
        (True, True)
        >>> orders.relate(2, 0, (1, 2, 0))  # three turns by one are none
        True
        >>> orders.relate(0, 2, (0, 1, 2))
        False
        >>> orders.order(2), orders.order(7)
        ((2, 0, 1), None)
    """

    def __init__(self) -> None:
        self._decided: dict[int, tuple[int, Permutation]] = {}  # node -> its decider, and what carries over

    def relate(self, left: int, right: int, carried: Permutation) -> bool:
        """Demand that right's order is `carried` after left's; False, and no change, if that contradicts the others.

        Child `carried[c]` of `right` stands where child `c` of `left` does.
        """
        left_root, from_left = self._find(left, len(carried))
        right_root, from_right = self._find(right, len(carried))
        wanted = _after(carried, from_left)
        if left_root == right_root:
            return wanted == from_right
        self._decided[right_root] = left_root, _after(_inverse(from_right), wanted)
        return True

    def order(self, node: int) -> Permutation | None:
        """A node's order, where every root's is as it is; None for a node without relations."""
        return self._find(node, 0)[1] if node in self._decided else None

    def _find(self, node: int, size: int) -> tuple[int, Permutation]:
        """The root of a node's class, and what carries its order over."""
        decider, carried = self._decided.setdefault(node, (node, tuple(range(size))))
        way = [node]
        while self._decided[decider][0] != decider:
            way.append(decider)
            decider, further = self._decided[decider]
            carried = _after(carried, further)
        for passed in way[:-1]:  # the way becomes short for the next one
            upper = self._decided[passed][1]
            self._decided[passed] = decider, carried
            carried = _after(_inverse(upper), carried)
        return self._decided[node]


def _after(second: Permutation, first: Permutation) -> Permutation:
    return tuple(second[at] for at in first)


def _inverse(permutation: Permutation) -> Permutation:
    inverse = [0] * len(permutation)
    for at, child in enumerate(permutation):
        inverse[child] = at
    return tuple(inverse)
