"""The kernels of a cell's body in order, and where its intermediate values lie."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from edbatch.graph.body import Body, Node, Value, spec_of_value
from edbatch.graph.op import Kind
from edbatch.graph.passes.fuse import Run, fuse, reads
from edbatch.graph.spec import ParameterSpec
from edbatch.kernels.fused import Compute, Load, Recipe, Store, compiled, with_attributes
from edbatch.memory.windows import contiguous_columns


@dataclass(frozen=True)
class Single:
    """One node: `call(result, *operands, *payload)`; or, with `parts`, its operands copied to parts of the result."""

    node: int
    call: Callable[..., None]
    operands: tuple[Value | ParameterSpec, ...]
    payload: tuple[int, ...]
    variadic: bool
    parts: Callable[[Any], list[Any]] | None

    @property
    def computes(self) -> tuple[int, ...]:
        """Nodes whose values it writes."""
        return (self.node,)


@dataclass(frozen=True)
class Place:
    """Rows that a fused kernel reads or writes.

    Args:
        of: a node (its value, or with `in_result` a row of the cell's result) or a parameter.
        offset: where in a row, in entries.
        in_result: see `of`.
    """

    of: int | ParameterSpec
    offset: int = 0
    in_result: bool = False


@dataclass(frozen=True)
class Fused:
    """A run of element-wise nodes: `kernel(calls, size, *places)`."""

    kernel: Callable[..., None]
    size: int
    operands: tuple[Value | ParameterSpec, ...]
    computes: tuple[int, ...]
    places: tuple[Place, ...]


Step = Single | Fused


def steps_of(
    body: Body,
    fused: bool,
    in_result: dict[int, int],
    bind: Callable[[Any], Callable[..., None]],
    parts_of: Callable[[Any], Callable[[Any], list[Any]] | None],
) -> list[Step]:
    """The steps of a body.

    Args:
        fused: whether runs of element-wise nodes become one kernel.
        in_result: nodes computed right in the cell's result, and their column there.
        bind, parts_of: make a single node's kernel from its type.
    """
    nodes = [number for number, node in enumerate(body.nodes) if node.type.op.kind is not Kind.SOURCE]
    order: list[Run | int] = fuse(body) if fused else list(nodes)
    steps: list[Step] = []
    for item in order:
        if isinstance(item, Run):
            steps.append(_fused(body, item, in_result))
        else:
            node = body.nodes[item]
            steps.append(
                Single(
                    item, bind(node.type), operands_of(node), node.payload, node.type.op.variadic, parts_of(node.type)
                )
            )
    return steps


def operands_of(node: Node) -> tuple[Value | ParameterSpec, ...]:
    """Values and parameters in the order of the op's operands."""
    if node.type.op.variadic:
        return node.operands
    values = iter(node.operands)
    return tuple(operand if isinstance(operand, ParameterSpec) else next(values) for operand in node.type.operands)


def _fused(body: Body, run: Run, in_result: dict[int, int]) -> Fused:
    outside, inputs = reads(body, run)
    places: dict[Place, int] = {}
    instructions: list[Load | Compute] = []
    given: list[int | float] = []  # per operand from outside: the instruction that loads it, or a number
    for operand in outside:
        number = _number(body, operand)
        if number is None:
            instructions.append(_load(body, operand, run.size, places))
        given.append(len(instructions) - 1 if number is None else number)
    computed: dict[int, int] = {}
    for node in run.nodes:
        operands: list[int | float] = []
        for slot, operand in enumerate(operands_of(body.nodes[node])):
            if (node, slot) in inputs:
                operands.append(given[inputs[node, slot]])
            else:
                assert isinstance(operand, Value)
                operands.append(computed[operand.node])
        type = body.nodes[node].type
        computed[node] = len(instructions)
        instructions.append(Compute(with_attributes(type.op.scalar, type.attributes), tuple(operands)))
    stores = []
    for node in run.stores:
        column, offset = divmod(in_result.get(node, 0), run.size)
        place = Place(-1, offset, True) if node in in_result else Place(node)
        stores.append(Store(computed[node], places.setdefault(place, len(places)), column))
    recipe = Recipe(len(places), tuple(instructions), tuple(stores))
    loaded = tuple(operand for operand, at in zip(outside, given, strict=True) if isinstance(at, int))
    return Fused(compiled(recipe), run.size, loaded, run.stores, tuple(places))


def _load(body: Body, operand: Value | ParameterSpec, size: int, places: dict[Place, int]) -> Load:
    if isinstance(operand, ParameterSpec):
        place, column, entries = Place(operand), 0, operand.size
    else:
        begin = 0
        if operand.view is not None:
            whole = np.empty((2, *operand.view.root.shape), np.float32)
            begin = contiguous_columns(whole, operand.view.look(whole))[0]
        column, offset = divmod(begin, size)
        entries = spec_of_value(body, operand).size
        if entries != size:
            column, offset = 0, begin
        place = Place(operand.node, offset)
    return Load(places.setdefault(place, len(places)), column if entries == size else None)


def _number(body: Body, operand: Value | ParameterSpec) -> float | None:
    """The number that a constant operand is, None if it is none."""
    if isinstance(operand, Value) and operand.view is None:
        node = body.nodes[operand.node]
        if node.type.op.name in ("zeros", "ones"):
            return float(node.type.op.name == "ones")
        if node.value is not None and np.ndim(node.value) == 0 and np.isfinite(node.value):
            return float(node.value)
    return None


def place_values(
    body: Body, steps: list[Step], in_result: dict[int, int], kept: set[int]
) -> tuple[dict[int, int], int]:
    """Where each intermediate value begins in a scratch buffer, and the buffer's length, in entries of one call.

    A place is used again for a value of the same size once its value has been read for the last time.

    Args:
        in_result: nodes that are computed right in the result.
        kept: nodes that are read after the last step.
    """
    last = dict.fromkeys(kept, len(steps))
    for number, step in enumerate(steps):
        for operand in step.operands:
            if isinstance(operand, Value):
                last[operand.node] = max(number, last.get(operand.node, 0))
    places: dict[int, int] = {}
    free: dict[int, list[int]] = {}
    width = 0
    for number, step in enumerate(steps):
        for node in step.computes:
            size = body.nodes[node].type.out.size
            if node not in in_result:
                if free.get(size):
                    places[node] = free[size].pop()
                else:
                    places[node] = width
                    width += size
        for node in {operand.node for operand in step.operands if isinstance(operand, Value)}:
            if last[node] == number and node in places:
                free.setdefault(body.nodes[node].type.out.size, []).append(places[node])
    return places, width
