"""Pass: runs of nodes that one loop computes, and the order in which everything runs."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from edbatch.graph.cell.body import Body, Node, Value
from edbatch.graph.cell.passes.entries import along, by_rows, divided
from edbatch.graph.cell.passes.goes_through import LENGTH, GoesThrough, goes_through
from edbatch.graph.op import Kind
from edbatch.graph.sources import PARAMETER
from edbatch.graph.spec import Shape

#: Words that a run's kernel may be given: CUDA before 12.1 passes 4,096 bytes.
MOST_WORDS = 512


class Run(NamedTuple):
    """Nodes that one kernel computes: of values of one size, and of one number for each group of their entries.

    Args:
        nodes: in an order in which operands precede their users.
        sizes: of the axes along which entries are numbered, row by row.
        reduced: per axis, whether the entries along it are of one group; the other axes number the groups.
        stores: those of the nodes whose values something outside the run reads.
        through: per node, how it goes through its operands.
    """

    nodes: tuple[int, ...]
    sizes: Shape
    reduced: tuple[bool, ...]
    stores: tuple[int, ...]
    through: Mapping[int, GoesThrough]

    def axes_of(self, entries: int) -> list[int]:
        """The axes of a value of so many entries: all, or those that number the groups."""
        return axes_of(self.sizes, self.reduced, entries)


def axes_of(sizes: Sequence[int], reduced: Sequence[bool], entries: int) -> list[int]:
    """See `Run.axes_of`."""
    return [axis for axis, inside in enumerate(reduced) if not inside or entries == math.prod(sizes)]


def fuse(body: Body) -> list[Run | int]:
    """What to run, in order: runs, and single nodes.

    A node's stage is the number of changes between runs, and between runs and other nodes, on the way to it; a node
    joins a run of its stage that goes through the same entries (see `_Growing`). Everything that a stage reads from
    memory is of an earlier stage. A run whose kernel would be given more than `MOST_WORDS` becomes several.
    """
    stages: list[int] = []
    others: dict[int, list[int]] = defaultdict(list)
    runs: dict[int, list[_Growing]] = defaultdict(list)
    of_node: dict[int, _Growing] = {}
    for number, node in enumerate(body.nodes):
        below = [value.node for value in node.operands]
        if not is_fusible(node):
            stages.append(max((stages[one] + (one in of_node) for one in below), default=0))
            if node.type.op.kind is not Kind.SOURCE:
                others[stages[-1]].append(number)
            continue
        least = max((stages[one] + 1 for one in below), default=1)
        last = {of_node[one] for one in below if one in of_node and stages[one] + 1 == least}
        candidates = [run for run in last if all(of_node.get(one) is run or stages[one] + 1 < least for one in below)]
        through = goes_through(body, node)
        joined = next((run for run in (*candidates, *runs[least]) if run.take(number, node, through)), None)
        if joined is None:
            joined = _begun(number, node, through, least)
            runs[least].append(joined)
        of_node[number] = joined
        stages.append(joined.stage)
    readers = _readers(body)
    order: list[Run | int] = []
    for stage in sorted({*others, *runs}):
        order += others[stage]
        for run in runs[stage]:
            order += _runs(body, readers, run, tuple(run.nodes))
    return order


def alone(body: Body, number: int) -> Run:
    """The run of one node."""
    node = body.nodes[number]
    run = _begun(number, node, goes_through(body, node), stage=0)
    return Run((number,), tuple(run.sizes), tuple(run.reduced), (number,), run.through)


def is_fusible(node: Node) -> bool:
    """Whether a node can be part of a run: element-wise ops, reductions, picks, and copies of what views show."""
    op = node.type.op
    return bool(op.scalar or op.reduction or op.picks) or op.kind is Kind.VIEW


class _Growing:
    """A run while nodes are found for it.

    Attributes:
        stage: see `fuse`.
        nodes, sizes, reduced, through: of the run; axes are divided as its nodes need it.
    """

    def __init__(self, stage: int, size: int) -> None:
        self.stage = stage
        self.nodes: dict[int, bool] = {}  # whether there is one number for each entry
        self.through: dict[int, GoesThrough] = {}
        self.sizes = [size]
        self.reduced = [False]

    def take(self, number: int, node: Node, through: GoesThrough) -> bool:
        """Whether a node goes through the entries, or the groups, as the others do; then it is one of them."""
        if through.is_plain and self.sizes == [through.size] and not self.reduced[0]:
            self.nodes[number], self.through[number] = True, through
            return True
        axes = axes_of(self.sizes, self.reduced, through.size)
        if math.prod(self.sizes[axis] for axis in axes) != through.size:
            return False
        parts = divided([self.sizes[axis] for axis in axes], through.breaks)
        if parts is None:
            return False
        of_axis = [[size] for size in self.sizes]
        for axis, found in zip(axes, parts, strict=True):
            of_axis[axis] = found
        sizes = [size for found in of_axis for size in found]
        reduced = [inside for found, inside in zip(of_axis, self.reduced, strict=True) for _ in found]
        if any(through.reduced):
            inside = through.reduced_along(sizes) if through.size == math.prod(sizes) else None
            if inside is None or (any(reduced) and inside != reduced):
                return False
            reduced = inside
        if node.type.op.picks and any(value.node in self.nodes for slot, value in enumerate(node.operands) if not slot):
            return False  # what is at another entry is not there yet
        if not all(
            self._in_registers(value.node, through, slot, sizes, reduced)
            for slot, value in enumerate(node.operands)
            if value.node in self.nodes
        ):
            return False
        self.sizes, self.reduced = sizes, reduced
        grouped = any(reduced) and (any(through.reduced) or through.size != math.prod(sizes))
        self.nodes[number] = not grouped
        self.through[number] = through
        return True

    def _in_registers(self, below: int, through: GoesThrough, slot: int, sizes: list[int], reduced: list[bool]) -> bool:
        """Whether what is read of a node in the run is, at each entry, what was computed there."""
        axes = axes_of(sizes, reduced, through.size)
        mine = by_rows([sizes[axis] for axis in range(len(sizes)) if self.nodes[below] or not reduced[axis]])
        strides = iter(mine)
        lies = [next(strides) if self.nodes[below] or not inside else 0 for inside in reduced]
        want = tuple(lies[axis] if sizes[axis] > 1 else 0 for axis in axes)
        got = along(through.shape, through.strides[slot], [sizes[axis] for axis in axes])
        if self.nodes[below] and len(axes) < len(sizes):
            return False
        return through.firsts[slot] == 0 and got == want


def _begun(number: int, node: Node, through: GoesThrough, stage: int) -> _Growing:
    """A run of one node so far."""
    run = _Growing(stage, through.size)
    taken = run.take(number, node, through)
    assert taken, node.type
    return run


def _runs(body: Body, readers: list[set[int]], grown: _Growing, nodes: tuple[int, ...]) -> list[Run]:
    """Of these nodes one run, or as many as it takes."""
    inside = set(nodes)
    stores = tuple([number for number in sorted(inside) if not readers[number] <= inside])
    run = Run(nodes, tuple(grown.sizes), tuple(grown.reduced), stores, grown.through)
    if len(nodes) == 1 or _words(body, run) <= MOST_WORDS:
        return _list_by_list(body, grown, run) if run.sizes[0] == LENGTH and run.reduced[0] else [run]
    half = len(nodes) // 2
    return _runs(body, readers, grown, nodes[:half]) + _runs(body, readers, grown, nodes[half:])


def _list_by_list(body: Body, grown: _Growing, run: Run) -> list[Run]:
    """A run that reduces elements of lists, which goes through memory list by list; what need not, comes before it."""
    late = set[int]()
    for number in run.nodes:
        if any(run.through[number].reduced) or any(value.node in late for value in body.nodes[number].operands):
            late.add(number)
    first, rest = (tuple([x for x in run.stores if (x in late) is after]) for after in (False, True))
    before = _made_of(body, run, first)
    if not before or not all(grown.nodes[number] for number in before):
        return [run]
    apart = run._replace(nodes=before, reduced=(False,) * len(run.sizes), stores=first)
    return [apart, run._replace(nodes=_made_of(body, run, rest, known=first), stores=rest)]


def _made_of(body: Body, run: Run, stores: Sequence[int], known: Sequence[int] = ()) -> tuple[int, ...]:
    """The nodes of a run that some of its values are computed of, and these; without those that are known."""
    found: set[int] = set(stores)
    for number in reversed(run.nodes):
        if number in found:
            found |= {value.node for value in body.nodes[number].operands} - {*known}
    return tuple([number for number in run.nodes if number in found])


def _words(body: Body, run: Run) -> int:
    """How many words the kernel of a run is given, at most; see `kernels.language.given`."""
    accesses: set[Any] = set(run.stores)
    for (number, slot), at in reads(body, run)[1].items():
        through = run.through[number]
        accesses.add((at, through.firsts[slot], through.strides[slot], body.nodes[number].payload))
    numbered = [number for number in run.nodes if body.nodes[number].payload or body.nodes[number].type.op.picks]
    more = 3 + len(run.sizes) + 5  # a place with all numbers; and the number of rows and scratch, among others
    more += 4 * len(numbered)  # an integer or its number, how many may be picked, and how far apart these are
    return more + len(accesses) * (3 + 1 + len(run.sizes))  # a place, a column, and strides


def _readers(body: Body) -> list[set[int]]:
    """By which nodes each is read; -1: it is returned."""
    readers: list[set[int]] = [set() for _ in body.nodes]
    for number, node in enumerate(body.nodes):
        for value in node.operands:
            readers[value.node].add(number)
    for value in body.outputs:
        readers[value.node].add(-1)
    return readers


def is_contiguous(nodes: Sequence[Node], value: Value) -> bool:
    """Whether a row of the value lies in memory as its entries are numbered."""
    node = nodes[value.node]
    if node.type.op is PARAMETER and len(node.type.out.shape) == 2:  # stored by columns
        return False
    return value.view is None or value.view.contiguous


def reads(body: Body, run: Run) -> tuple[list[Value], dict[tuple[int, int], int]]:
    """What a run reads from outside, each once; and (node, operand slot) -> position in that list."""
    found: dict[Value, int] = {}
    places: dict[tuple[int, int], int] = {}
    inside = set(run.nodes)
    for number in run.nodes:
        for slot, operand in enumerate(body.nodes[number].operands):
            if operand.node not in inside:
                places[number, slot] = found.setdefault(operand, len(found))
    return list(found), places
