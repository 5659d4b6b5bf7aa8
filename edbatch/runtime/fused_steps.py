"""Runs of element-wise nodes as fused kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from edbatch.graph.body import Body, Value, operands_of, spec_of_value
from edbatch.graph.passes.fuse import Run, reads
from edbatch.graph.spec import ParameterSpec
from edbatch.kernels.program import Step
from edbatch.kernels.recipe import Compute, Load, Recipe, Store, constant, with_attributes
from edbatch.memory.windows import contiguous_columns
from edbatch.runtime.cell_steps import Native, Operand

# Rows that a kernel reads or writes: a node (its value; None: the cell's result) or a parameter, and where in a row.
Place = tuple[int | ParameterSpec | None, int]


def fused_step(body: Body, run: Run, in_result: dict[int, int], homes: dict[int, tuple[int, int]]) -> Native:
    """The step of a run.

    Args:
        in_result: nodes computed right in the cell's result, and their column there.
        homes: see `cell_places.homes_of`.
    """
    parts = Parts(in_result, homes)
    outside, inputs = reads(body, run)
    places: dict[Place, int] = {}
    instructions: list[Load | Compute] = []
    given: list[int | str] = []  # per operand from outside: the instruction that loads it, or a constant
    for operand in outside:
        number = _number(body, operand)
        if number is None:
            instructions.append(_load(body, operand, run.size, places, parts))
        given.append(len(instructions) - 1 if number is None else constant(number))
    computed: dict[int, int] = {}
    for node in run.nodes:
        operands: list[int | str] = []
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
        of, begin = parts.whole(node)
        column, offset = divmod(begin, run.size)
        place: Place = (of, offset)
        stores.append(Store(computed[node], places.setdefault(place, len(places)), column))
    recipe = Recipe(len(places), tuple(instructions), tuple(stores))

    def encode(link: Any) -> tuple[int, ...]:
        positions = []
        for of, offset in places:
            slot, column = link.result(0) if of is None else link.at(Value(of) if isinstance(of, int) else of)
            positions.append((slot, column + offset))
        return Step.FUSED, link.kernel(recipe), run.size, *link.place_list(positions)

    loaded = tuple(operand for operand, at in zip(outside, given, strict=True) if isinstance(at, int))
    return Native(encode, loaded, run.stores)


@dataclass(frozen=True)
class Parts:
    """What is part of a larger row, so that a kernel reaches all of that row through one place."""

    in_result: dict[int, int]
    homes: dict[int, tuple[int, int]]

    def whole(self, node: int) -> tuple[int | None, int]:
        """The node of whose row a node's value is part (None: the cell's result), and the first column."""
        column = 0
        while node in self.homes:
            node, more = self.homes[node]
            column += more
        if node in self.in_result:
            return None, self.in_result[node] + column
        return node, column


def _load(body: Body, operand: Operand, size: int, places: dict[Place, int], parts: Parts) -> Load:
    place: Place
    if isinstance(operand, ParameterSpec):
        place, column, entries = (operand, 0), 0, operand.size
    else:
        of, begin = parts.whole(operand.node)
        if operand.view is not None:
            whole = np.empty((2, *operand.view.root.shape), np.float32)
            begin += contiguous_columns(whole, operand.view.look(whole))[0]
        column, offset = divmod(begin, size)
        entries = spec_of_value(body, operand).size
        if entries != size:
            column, offset = 0, begin
        place = (of, offset)
    return Load(places.setdefault(place, len(places)), column if entries == size else None)


def _number(body: Body, operand: Operand) -> float | None:
    """The number that a constant operand is, None if it is none."""
    if isinstance(operand, Value) and operand.view is None:
        node = body.nodes[operand.node]
        if node.type.op.name in ("zeros", "ones"):
            return float(node.type.op.name == "ones")
        if node.value is not None and np.ndim(node.value) == 0 and np.isfinite(node.value):
            return float(node.value)
    return None
