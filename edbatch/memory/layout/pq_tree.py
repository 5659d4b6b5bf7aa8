"""PQ trees: all orders of a set in which given subsets are consecutive."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T", bound=Hashable)

EMPTY, PARTIAL, FULL = range(3)  # of the subset are no leaves below a node, some, or all


class PQNode(NamedTuple, Generic[T]):
    """A node.

    Attributes:
        kind: `"P"` (children in any order), `"Q"` (three or more children, in this order or its reverse) or `"leaf"`.
        children: numbers of nodes, in the present order.
        element: of a leaf; None for others.
    """

    kind: str
    children: list[int]
    element: T | None = None


class PQTree(Generic[T]):
    """All orders of a set in which given subsets are consecutive (Booth and Lueker 1976; the paper's section 3.2).

    A new tree represents every order; each `reduce` leaves those in which a subset is consecutive. The children of a P
    node may be permuted, those of a Q node reversed; in print these are `{...}` and `[...]`.

    Everything is linear in the elements, a reduction too. (Booth and Lueker's is linear in the subset; who plans a
    layout goes through the tree after each anyway.) No method recurses.

    Args:
        elements: hashable and distinct.

    Attributes:
        nodes: a node comes before its children, leaves are in the order of `frontier`. A reduction replaces them as a
            whole: a shallow copy is a tree of its own.

    Example:
        >>> tree = PQTree("abcde")
        >>> tree
        PQTree({a b c d e})
        >>> tree.reduce("cd"), tree.reduce("de")
        (True, True)
        >>> tree
        PQTree({a b [c d e]})
        >>> tree.reduce("ce")  # d is always between them; the tree stays as it was
        False
        >>> tree.frontier()
        ['a', 'b', 'c', 'd', 'e']
    """

    def __init__(self, elements: Iterable[T]) -> None:
        leaves = [PQNode("leaf", [], element) for element in elements]
        self.nodes = leaves if len(leaves) == 1 else [PQNode("P", [*range(1, len(leaves) + 1)]), *leaves]

    def reduce(self, subset: Iterable[T]) -> bool:
        """Keep the orders in which the subset is consecutive; False, and no change, if there are none.

        An element named twice counts once; a subset of less than two elements is always consecutive.
        """
        wanted = set(subset)
        inside, leaves = [0] * len(self.nodes), [1] * len(self.nodes)
        for number in range(len(self.nodes) - 1, -1, -1):
            node = self.nodes[number]
            if node.kind == "leaf":
                inside[number] = node.element in wanted
            else:
                inside[number] = sum([inside[child] for child in node.children])
                leaves[number] = sum([leaves[child] for child in node.children])
        if len(wanted) < 2:
            return True
        root = max(number for number, n in enumerate(inside) if n == len(wanted))
        state = [EMPTY if not n else FULL if n == of else PARTIAL for n, of in zip(inside, leaves, strict=True)]
        if state[root] != FULL:
            changed = _Reduction(self.nodes, state).reduced(root)
            if changed is None:
                return False
            self.nodes = changed
        return True

    def frontier(self) -> list[T]:
        """One of the orders: the leaves from left to right."""
        return [node.element for node in self.nodes if node.kind == "leaf"]  # type: ignore[misc]

    def __repr__(self) -> str:
        text = [""] * len(self.nodes)
        for number in range(len(self.nodes) - 1, -1, -1):
            kind, children, element = self.nodes[number]
            left, right = {"P": "{}", "Q": "[]", "leaf": (str(element), "")}[kind]
            text[number] = f"{left}{' '.join([text[child] for child in children])}{right}"
        return f"PQTree({text[0]})"


class _Reduction:
    """A reduction: the templates of Booth and Lueker, children first, on a copy of the nodes."""

    def __init__(self, nodes: Sequence[PQNode], state: list[int]) -> None:
        self._nodes, self._state = [*nodes], state
        self._chains: dict[int, list[int]] = {}  # what replaces partial nodes: parts of a Q node, the full ones last

    def reduced(self, root: int) -> list[PQNode] | None:
        """The new nodes; None if the subset cannot be consecutive.

        Args:
            root: the node of the smallest subtree that holds the subset: there, and only there, it may lie inside.
        """
        for number in range(len(self._state) - 1, root, -1):
            if self._state[number] == PARTIAL:
                chain = self._chain(self._nodes[number])
                if chain is None:
                    return None
                self._chains[number] = chain
        changed = self._root(self._nodes[root])
        if changed is None:
            return None
        self._nodes[root] = changed
        return _in_order(self._nodes)

    def _parted(self, children: list[int]) -> tuple[list[int], list[int], list[int]]:
        """The children of a P node that are empty, partial, and full; of several full ones a node of their own."""
        empty, partial, full = ([one for one in children if self._state[one] == which] for which in range(3))
        return empty, partial, self._group(full)

    def _group(self, children: list[int]) -> list[int]:
        return children if len(children) < 2 else [self._added(PQNode("P", children))]

    def _added(self, node: PQNode) -> int:
        self._nodes.append(node)
        return len(self._nodes) - 1

    def _chain(self, node: PQNode) -> list[int] | None:
        if node.kind == "P":
            empty, partial, full = self._parted(node.children)
            inner = [part for child in partial for part in self._chains[child]]
            return [*self._group(empty), *inner, *full] if len(partial) < 2 else None
        for children in (node.children, node.children[::-1]):
            states = [self._state[child] for child in children]
            if states == sorted(states) and states.count(PARTIAL) < 2:
                return [part for child in children for part in self._chains.get(child, [child])]
        return None

    def _root(self, node: PQNode) -> PQNode | None:
        if node.kind == "P":
            empty, partial, full = self._parted(node.children)
            if len(partial) > 2:
                return None
            first, last = [*(self._chains[child] for child in partial), [], []][:2]
            chain = [*first, *full, *reversed(last)]
            if not partial:
                return PQNode("P", [*empty, *full])
            return PQNode("P", [*empty, self._added(PQNode("Q", chain))]) if empty else PQNode("Q", chain)
        children = node.children
        begin, *_, end = (at for at, child in enumerate(children) if self._state[child] != EMPTY)
        inner = children[begin + 1 : end]
        if any(self._state[child] != FULL for child in inner):
            return None
        first, last = (self._chains.get(children[at], [children[at]]) for at in (begin, end))
        return PQNode("Q", [*children[:begin], *first, *inner, *reversed(last), *children[end + 1 :]])


def _in_order(nodes: Sequence[PQNode]) -> list[PQNode]:
    """Those nodes that the first one leads to, numbered anew: each before its children."""
    found: list[PQNode] = []
    stack = [(0, -1)]
    while stack:
        number, parent = stack.pop()
        if parent >= 0:
            found[parent].children.append(len(found))
        kind, children, element = nodes[number]
        stack += [(child, len(found)) for child in reversed(children)]
        found.append(PQNode(kind, [], element))
    return found
