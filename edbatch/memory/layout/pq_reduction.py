"""Reduction of a PQ tree: bubble up, match the templates, rebuild; linear in the size of the subset.

Booth and Lueker, "Testing for the Consecutive Ones Property, Interval Graphs, and Graph Planarity Using PQ-Tree
Algorithms" (1976). Three steps, and only the last one changes the tree, so a reduction that fails leaves it as it was:

1. `_bubble` climbs from the leaves of the subset to the root of the pertinent subtree (the smallest that holds them).
   Children of a Q node are linked to their neighbours, and only the two at its ends are sure to know
   their parent: a child inside is blocked until a neighbour knows it. What stays blocked in one run lies inside
   one Q node, whose place a pseudo-node takes.
2. `_match` labels nodes full or partial, children first, and checks that a template fits each of them.
3. `_rebuild` applies the templates. A partial node becomes a chain of linked nodes, from its empty to its full end,
   with which its parent replaces it.

Why it is linear: a step touches pertinent nodes only, and handles a Q node's empty children, or a P node's, in O(1)
together (the P node that loses its full children lives on as the one of the empty children). Pertinent nodes number
O(|subset|) plus the partial ones with a single pertinent child; those vanish in the Q node that is built, which
Booth and Lueker's potential argument pays for: O(elements + subsets + sum of |subset|) over all reductions.
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import Any, NamedTuple


class Node:
    """A node of the tree: a leaf, a P node (`children`) or a Q node (`ends`).

    Attributes:
        parent: to be trusted only where there are fewer than two siblings.
        siblings: the neighbours among the children of a Q node, in no order; empty for a child of a P node.
        children: of a P node, as the keys of a dictionary; None for others.
        ends: the first and the last child of a Q node; None for others.
        element: of a leaf.
    """

    __slots__ = ("children", "element", "ends", "parent", "siblings")

    def __init__(self, element: Any = None) -> None:
        self.parent: Node | None = None
        self.siblings: list[Node] = []
        self.children: dict[Node, None] | None = None
        self.ends: list[Node] | None = None
        self.element = element

    def adopt(self, *children: Node) -> None:
        """Become their P node."""
        if self.children is None:
            self.children = {}
        for child in children:
            self.children[child] = None
            child.parent = self

    def enclose(self, ends: Chain) -> None:
        """Become the Q node of a chain."""
        self.children = None
        self.ends = list(ends)
        ends[0].parent = ends[1].parent = self


Chain = tuple[Node, Node]  # linked nodes, by their ends: (empty end, full end) where they replace a partial node


class _Run(NamedTuple):
    """The pertinent children of a Q node side by side, and the neighbours outside of both ends."""

    nodes: list[Node]
    outer: tuple[Node | None, Node | None]


class _Match(NamedTuple):
    """What a reduction will do: pertinent nodes, children first, and what is known of them."""

    order: list[Node]
    pertinent: dict[Node, list[Node]]
    full: set[Node]
    runs: dict[Node, _Run]


def reduce_leaves(leaves: list[Node]) -> bool:
    """Make two or more leaves of one tree consecutive; False, and nothing changed, if that cannot be.

    The root of the tree stays the same node.
    """
    bubbled = _bubble(leaves)
    match = bubbled and _match(leaves, *bubbled)
    if not match:
        return False
    _rebuild(match)
    return True


def other_sibling(node: Node, sibling: Node | None) -> Node | None:
    """The neighbour of a Q node's child on the other side than `sibling`; None where the Q node ends."""
    for other in node.siblings:
        if other is not sibling:
            return other
    return None


def link(pieces: list[Chain]) -> Chain:
    """Link chains, one after the other."""
    for (_, left), (right, _) in pairwise(pieces):
        _know(left, right)
        _know(right, left)
    return pieces[0][0], pieces[-1][1]


def _know(node: Node, neighbour: Node) -> None:
    node.siblings.append(neighbour)
    if len(node.siblings) == 2:
        node.parent = None  # not to be trusted, and not to be kept alive


def _bubble(leaves: list[Node]) -> tuple[dict[Node, list[Node]], dict[Node, Node | None]] | None:
    """The pertinent children of every node on the way up, and everyone's parent; None if there are several runs."""
    pertinent: dict[Node, list[Node]] = {leaf: [] for leaf in leaves}
    parents: dict[Node, Node | None] = {}
    blocked: set[Node] = set()
    runs = 0  # of blocked nodes
    beyond = 0  # 1 once the root of the tree has been passed
    queue = deque(leaves)
    while len(queue) + runs + beyond > 1:
        if not queue:
            return None
        node = queue.popleft()
        siblings = node.siblings
        beside = [sibling for sibling in siblings if sibling in blocked]
        if len(siblings) < 2:
            parent = node.parent
        else:
            for sibling in siblings:
                if sibling in parents:
                    parent = parents[sibling]
                    break
            else:
                blocked.add(node)
                runs += 1 - len(beside)
                continue
        known = [node]
        for at in beside:
            before = node
            while at in blocked:
                blocked.remove(at)
                known.append(at)
                before, at = at, other_sibling(at, before)  # type: ignore[assignment]  # blocked ones have two
        runs -= len(beside)
        for child in known:
            parents[child] = parent
        if parent is None:
            beyond = 1
        else:
            if parent not in pertinent:
                pertinent[parent] = []
                queue.append(parent)
            pertinent[parent] += known
    if runs:
        pseudo = Node()
        pertinent[pseudo] = [leaf for leaf in pertinent if leaf in blocked]  # a set's order would not be repeatable
        parents.update(dict.fromkeys(blocked, pseudo))
    return pertinent, parents


def _match(leaves: list[Node], pertinent: dict[Node, list[Node]], parents: dict[Node, Node | None]) -> _Match | None:
    """Label the pertinent nodes, up to the root; None where no template fits."""
    match = _Match([], pertinent, set(leaves), {})
    inside = dict.fromkeys(leaves, 1)  # leaves of the subset below a node
    waiting: dict[Node, int] = {}
    ready = deque(leaves)
    while True:
        node = ready.popleft()
        is_root = inside[node] == len(leaves)
        if pertinent[node]:
            fits = _match_p if node.children is not None else _match_q
            if not fits(match, node, is_root):
                return None
            match.order.append(node)
        if is_root:
            return match
        parent = parents[node]
        assert parent is not None  # the root of the subtree comes first
        inside[parent] = inside.get(parent, 0) + inside[node]
        waiting[parent] = waiting.get(parent, len(pertinent[parent])) - 1
        if not waiting[parent]:
            ready.append(parent)


def _match_p(match: _Match, node: Node, is_root: bool) -> bool:
    """Templates P1 to P6: at most one partial child, two at the root."""
    children = match.pertinent[node]
    partial = sum(child not in match.full for child in children)
    if not partial and node.children is not None and len(children) == len(node.children):
        match.full.add(node)
    return partial <= 1 + is_root


def _match_q(match: _Match, node: Node, is_root: bool) -> bool:
    """Templates Q1 to Q3: one run, partial only at its ends; below the root, it reaches an end of the node in full."""
    full, run = match.full, _find_run(match.pertinent[node])
    if len(run.nodes) < len(match.pertinent[node]):
        return False
    if run.outer == (None, None) and full.issuperset(run.nodes):
        full.add(node)
        return True
    if is_root:
        match.runs[node] = run
        return full.issuperset(run.nodes[1:-1])
    for turned in (run, _Run(run.nodes[::-1], run.outer[::-1])):
        if turned.outer[1] is None and full.issuperset(turned.nodes[1:]):
            match.runs[node] = turned  # ends with the full end of the node
            return True
    return False


def _find_run(children: list[Node]) -> _Run:
    """The run that the first of these children of a Q node belongs to."""
    members = set(children)
    halves: list[list[Node]] = [[], []]
    outer: list[Node | None] = [None, None]
    for side, sibling in enumerate(children[0].siblings):
        before, at = children[0], sibling
        while at is not None and at in members:
            halves[side].append(at)
            before, at = at, other_sibling(at, before)  # type: ignore[assignment]
        outer[side] = at
    return _Run([*reversed(halves[0]), children[0], *halves[1]], (outer[0], outer[1]))


def _rebuild(match: _Match) -> None:
    """Apply the templates, children first."""
    chains: dict[Node, Chain] = {}
    root = match.order[-1]
    for node in match.order:
        if node not in match.full:
            if node.children is not None:
                rebuild_p = _rebuild_p_root if node is root else _rebuild_p
                rebuild_p(match, node, chains)
            else:
                _rebuild_q(match, node, chains, node is root)


def _take_out(match: _Match, node: Node, chains: dict[Node, Chain]) -> tuple[list[Node], list[Chain]]:
    """Take the pertinent children out of a P node: (a node of the full ones, if any), (chains of the partial ones)."""
    assert node.children is not None
    children = match.pertinent[node]
    for child in children:
        del node.children[child]
    full = [child for child in children if child in match.full]
    if len(full) > 1:
        group = Node()
        group.adopt(*full)
        full = [group]
    return full, [chains[child] for child in children if child not in match.full]


def _rebuild_p(match: _Match, node: Node, chains: dict[Node, Chain]) -> None:
    """Templates P3 and P5: empty children, the partial child, full children."""
    full, partial = _take_out(match, node, chains)
    pieces = partial + [(group, group) for group in full]
    if node.children:
        empty = node if len(node.children) > 1 else next(iter(node.children))
        empty.siblings = []
        pieces.insert(0, (empty, empty))
    chains[node] = link(pieces)


def _rebuild_p_root(match: _Match, node: Node, chains: dict[Node, Chain]) -> None:
    """Templates P2, P4 and P6: the full children between the full ends of the partial ones."""
    full, partial = _take_out(match, node, chains)
    if not partial:
        node.adopt(*full)
        return
    ends = link(partial[:1] + [(group, group) for group in full] + [chain[::-1] for chain in partial[1:]])
    if node.children:
        inner = Node()
        inner.enclose(ends)
        node.adopt(inner)
    else:
        node.enclose(ends)


def _rebuild_q(match: _Match, node: Node, chains: dict[Node, Chain], is_root: bool) -> None:
    """Templates Q2 and Q3: chains take the places of the partial children."""
    nodes, outer = match.runs[node]
    pieces = []
    for child in nodes:
        if child in match.full:
            child.siblings = []
            pieces.append((child, child))
        else:
            pieces.append(chains[child])
    if is_root and nodes[-1] not in match.full:
        pieces[-1] = pieces[-1][::-1]
    ends = link(pieces)
    for old, new, neighbour in zip((nodes[0], nodes[-1]), ends, outer, strict=True):
        if neighbour is not None:
            neighbour.siblings[neighbour.siblings.index(old)] = new
            _know(new, neighbour)
        elif is_root:
            assert node.ends is not None  # a pseudo-node has neighbours outside
            node.ends[node.ends.index(old)] = new
            new.parent = node
    if not is_root:
        assert node.ends is not None
        first, last = node.ends
        chains[node] = (ends[0] if outer[0] is None else last if first is nodes[-1] else first, ends[1])
