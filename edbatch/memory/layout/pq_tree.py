"""PQ trees: all orders of a set in which given subsets are consecutive."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import permutations
from math import factorial, prod
from typing import Generic, NamedTuple, TypeVar

from edbatch.errors import EdBatchError
from edbatch.memory.layout.pq_reduction import Node, link, other_sibling, reduce_leaves

T = TypeVar("T", bound=Hashable)


class PQNode(NamedTuple, Generic[T]):
    """A node as `PQTree.nodes` shows it.

    Attributes:
        kind: `"P"` (children in any order), `"Q"` (three or more children, in this order or its reverse) or `"leaf"`.
        children: numbers of nodes, in the present order.
        element: of a leaf; None for others.
    """

    kind: str
    children: list[int]
    element: T | None


class PQTree(Generic[T]):
    """All orders of a set in which given subsets are consecutive (Booth and Lueker 1976; the paper's section 3.2).

    A new tree represents every order; each `reduce` leaves those in which a subset is consecutive. The children of a P
    node may be permuted, those of a Q node reversed; in print these are `{...}` and `[...]`.

    Reducing costs O(elements + subsets + sum of subset sizes) over the life of a tree (`pq_reduction` says why);
    everything else is linear in the elements. No method recurses.

    Args:
        elements: hashable and distinct.

    Raises:
        EdBatchError: an element is there twice.

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
        >>> tree.count_orders()
        12
        >>> tree.frontier()
        ['a', 'b', 'c', 'd', 'e']
    """

    def __init__(self, elements: Iterable[T]) -> None:
        self._leaves: dict[T, Node] = {}
        for element in elements:
            if element in self._leaves:
                raise EdBatchError(f"PQTree: element {element!r} is there twice")
            self._leaves[element] = Node(element)
        if len(self._leaves) == 1:
            (self._root,) = self._leaves.values()
        else:
            self._root = Node()
            self._root.adopt(*self._leaves.values())

    def reduce(self, subset: Iterable[T]) -> bool:
        """Keep the orders in which the subset is consecutive; False, and no change, if there are none.

        An element named twice counts once; a subset of less than two elements is always consecutive.

        Raises:
            EdBatchError: an element is not in the tree.

        Example:
            >>> tree = PQTree([1, 2, 3])
            >>> tree.reduce([3, 1, 3]), tree
            (True, PQTree({2 {3 1}}))
            >>> tree.reduce([4])
            Traceback (most recent call last):
            edbatch.errors.EdBatchError: PQTree.reduce: 4 is no element of the tree
        """
        distinct = dict.fromkeys(subset)
        for element in distinct:
            if element not in self._leaves:
                raise EdBatchError(f"PQTree.reduce: {element!r} is no element of the tree")
        return len(distinct) < 2 or reduce_leaves([self._leaves[element] for element in distinct])

    def frontier(self) -> list[T]:
        """One of the orders: the leaves from left to right."""
        return [node.element for node in self.nodes() if node.kind == "leaf"]  # type: ignore[misc]

    def orders(self) -> Iterator[list[T]]:
        """All orders, each once; the tree may change meanwhile.

        Example:
            >>> tree = PQTree("abc")
            >>> tree.reduce("ab")
            True
            >>> sorted("".join(order) for order in tree.orders())
            ['abc', 'bac', 'cab', 'cba']
        """
        nodes = self.nodes()
        inner = [number for number, node in enumerate(nodes) if node.kind != "leaf"]

        def arrangements(number: int) -> Iterator[Sequence[int]]:
            children = nodes[number].children
            return permutations(children) if nodes[number].kind == "P" else iter((children, children[::-1]))

        # An odometer: one wheel per inner node.
        wheels = [arrangements(number) for number in inner]
        arranged = {number: next(wheel) for number, wheel in zip(inner, wheels, strict=True)}
        while True:
            yield arrange(nodes, arranged)
            for place, number in enumerate(inner):
                turned = next(wheels[place], None)
                if turned is not None:
                    arranged[number] = turned
                    break
                wheels[place] = arrangements(number)
                arranged[number] = next(wheels[place])
            else:
                return

    def count_orders(self) -> int:
        """How many orders there are, without going through them.

        Example:
            >>> PQTree(range(10)).count_orders()
            3628800
        """
        return prod(2 if node.kind == "Q" else factorial(len(node.children)) for node in self.nodes())

    def nodes(self) -> list[PQNode[T]]:
        """The tree as a flat list: a node comes before its children, leaves are in the order of `frontier`.

        Example:
            >>> tree = PQTree("abc")
            >>> tree.reduce("bc")
            True
            >>> for number, node in enumerate(tree.nodes()):
            ...     print(number, node.kind, node.children, node.element)
            0 P [1, 2] None
            1 leaf [] a
            2 P [3, 4] None
            3 leaf [] b
            4 leaf [] c
        """
        seen: list[PQNode[T]] = []
        stack: list[tuple[Node, int]] = [(self._root, -1)]
        while stack:
            node, parent = stack.pop()
            if parent >= 0:
                seen[parent].children.append(len(seen))
            children: list[Node] = []
            if node.ends is not None:
                kind = "Q"
                before: Node | None = None
                at: Node | None = node.ends[0]
                while at is not None:
                    children.append(at)
                    before, at = at, other_sibling(at, before)
            elif node.children is not None:
                kind, children = "P", list(node.children)
            else:
                kind = "leaf"
            stack += [(child, len(seen)) for child in reversed(children)]
            seen.append(PQNode(kind, [], node.element))
        return seen

    def copy(self) -> PQTree[T]:
        """An independent tree of the same orders."""
        nodes = self.nodes()
        copies = [Node(node.element) for node in nodes]
        for node, twin in zip(nodes, copies, strict=True):
            children = [copies[child] for child in node.children]
            if node.kind == "P":
                twin.adopt(*children)
            elif node.kind == "Q":
                twin.enclose(link([(child, child) for child in children]))
        tree = PQTree[T](())
        tree._root = copies[0]
        tree._leaves = {twin.element: twin for node, twin in zip(nodes, copies, strict=True) if node.kind == "leaf"}
        return tree

    def __len__(self) -> int:
        return len(self._leaves)

    def __str__(self) -> str:
        nodes = self.nodes()
        text = []
        stack: list[int | str] = [0]
        while stack:
            top = stack.pop()
            if isinstance(top, str):
                text.append(top)
            elif nodes[top].kind == "leaf":
                text.append(str(nodes[top].element))
            else:
                left, right = "{}" if nodes[top].kind == "P" else "[]"
                text.append(left)
                stack.append(right)
                for child in reversed(nodes[top].children):
                    stack += [child, " "]
                if nodes[top].children:
                    stack.pop()
        return "".join(text)

    def __repr__(self) -> str:
        return f"PQTree({self})"


def arrange(nodes: Sequence[PQNode[T]], arranged: dict[int, Sequence[int]]) -> list[T]:
    """The leaves from left to right, with the children of inner nodes in given orders.

    Example:
        >>> tree = PQTree("abc")
        >>> arrange(tree.nodes(), {0: [3, 1, 2]})
        ['c', 'a', 'b']
    """
    order = []
    stack = [0]
    while stack:
        number = stack.pop()
        if nodes[number].kind == "leaf":
            order.append(nodes[number].element)
        else:
            stack += reversed(arranged[number])
    return order  # type: ignore[return-value]
