"""Pass: runs of element-wise ops that one loop computes, and the order in which everything runs."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from edbatch.graph.body import Body, Node, Value
from edbatch.graph.op import Kind
from edbatch.graph.sources import PARAMETER
from edbatch.graph.spec import ParameterSpec, Shape, Spec

#: Values that a run reads and stores at most: CUDA passes the places of 170, compilers give up long before.
MOST_PLACES = 128


@dataclass(frozen=True)
class Run:
    """Element-wise ops on values of one size, between two products or the like.

    Args:
        nodes: in an order in which operands precede their users.
        size: entries of each value.
        stores: those of the nodes whose values something outside the run reads.
    """

    nodes: tuple[int, ...]
    size: int
    stores: tuple[int, ...]


def fuse(body: Body) -> list[Run | int]:
    """What to run, in order: runs, and single nodes.

    A node's stage is the number of changes between element-wise and other ops on the way to it; element-wise ops of
    one size and stage form a run. Everything that a stage reads from outside is of an earlier stage. A run that reads
    and stores more than `MOST_PLACES` values becomes several.
    """
    sizes = [_size(body, node) for node in body.nodes]
    stages: list[int] = []
    for node, size in zip(body.nodes, sizes, strict=True):
        stage = 0
        for value in node.operands:
            below = sizes[value.node]
            in_register = value.view is None and size == below != 0
            both_other = size == 0 == below
            stage = max(stage, stages[value.node] + (0 if in_register or both_other else 1))
        stages.append(stage)
    runs: dict[tuple[int, int], list[int]] = defaultdict(list)
    for number, node in enumerate(body.nodes):
        if node.type.op.kind is not Kind.SOURCE:
            runs[stages[number], sizes[number]].append(number)
    order: list[Run | int] = []
    for (_, size), numbers in sorted(runs.items()):
        if size == 0:
            order += numbers
        else:
            order += _runs(body, tuple(numbers), size)
    return order


def _runs(body: Body, nodes: tuple[int, ...], size: int) -> list[Run]:
    """One run, or as many as it takes."""
    run = Run(nodes, size, _stores(body, set(nodes)))
    if len(nodes) == 1 or len(reads(body, run)[0]) + len(run.stores) <= MOST_PLACES:
        return [run]
    half = len(nodes) // 2
    return _runs(body, nodes[:half], size) + _runs(body, nodes[half:], size)


def _stores(body: Body, inside: set[int]) -> tuple[int, ...]:
    """Which nodes of a run are read outside, or as memory."""
    read = {value.node for value in body.outputs}
    for number, node in enumerate(body.nodes):
        for value in node.operands:
            if number not in inside or value.view is not None:
                read.add(value.node)
    return tuple(sorted(inside & read))


def _size(body: Body, node: Node) -> int:
    """Entries of the value if the node can be part of a run, else 0."""
    out = node.type.out
    op = node.type.op
    if not op.scalar or out.dtype != np.float32:
        return 0
    values = iter(node.operands)
    for spec in node.type.operands:
        if not _fits(spec.shape, out.shape):
            return 0
        if isinstance(spec, ParameterSpec):
            if len(spec.shape) > 1:  # stored by columns
                return 0
        elif not is_contiguous(body, next(values)):
            return 0
    return out.size


def _fits(shape: Shape, out: Shape) -> bool:
    """Whether broadcasting to `out` repeats nothing or one number."""
    return shape == out or all(size == 1 for size in shape) or _trimmed(shape) == _trimmed(out)


def _trimmed(shape: Shape) -> Shape:
    while shape and shape[0] == 1:
        shape = shape[1:]
    return shape


def is_contiguous(body: Body, value: Value) -> bool:
    """Whether a row of the value lies in memory as its entries are numbered."""
    node = body.nodes[value.node]
    if node.type.op is PARAMETER and len(node.type.out.shape) > 1:  # stored by columns
        return False
    if value.view is None:
        return True
    root: Spec = value.view.root
    return bool(value.view.look(np.empty((2, *root.shape), np.float32))[0].flags.c_contiguous)


def reads(body: Body, run: Run) -> tuple[list[Value | ParameterSpec], dict[tuple[int, int], int]]:
    """What a run reads from outside, each once; and (node, operand slot) -> position in that list."""
    found: dict[Value | ParameterSpec, int] = {}
    places: dict[tuple[int, int], int] = {}
    for number in run.nodes:
        node = body.nodes[number]
        values = iter(node.operands)
        for slot, spec in enumerate(node.type.operands):
            operand: Value | ParameterSpec = spec if isinstance(spec, ParameterSpec) else next(values)
            if isinstance(operand, Value) and operand.view is None and operand.node in run.nodes:
                continue
            places[number, slot] = found.setdefault(operand, len(found))
    return list(found), places
