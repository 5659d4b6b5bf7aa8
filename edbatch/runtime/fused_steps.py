"""Runs of element-wise nodes as kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from edbatch.graph.body import Body, Value, operands_of, spec_of_value
from edbatch.graph.passes.fuse import Run, reads
from edbatch.graph.spec import ParameterSpec
from edbatch.kernels.language.build import Builder
from edbatch.kernels.language.ir import NEXT, SAME, Kernel, Load, Place, Store
from edbatch.kernels.program import KernelStep
from edbatch.memory.windows import contiguous_columns
from edbatch.runtime.cell_steps import Native, Operand

# Where a kernel reads or writes: rows of a node (its value; None: the cell's result) or a parameter, and the column.
Position = tuple[int | ParameterSpec | None, int]


def fused_step(body: Body, run: Run, in_result: dict[int, int], homes: dict[int, tuple[int, int]]) -> Native:
    """The step of a run.

    Args:
        in_result: nodes computed right in the cell's result, and their column there.
        homes: see `cell_places.homes_of`.
    """
    parts = Parts(in_result, homes)
    outside, inputs = reads(body, run)
    places: dict[int | ParameterSpec | None, int] = {}
    columns: dict[Position, int] = {}
    make = Builder()
    given: list[int] = []  # values of the operands from outside
    loaded: list[Operand] = []
    for operand in outside:
        number = _number(body, operand)
        if number is None:
            position = _position(operand, parts)
            place = places.setdefault(position[0], len(places))
            column = columns.setdefault(position, len(columns))
            stride = NEXT if _entries(body, operand) == run.size else SAME
            given.append(make.add(Load(place, (stride,), column)))
            loaded.append(operand)
        else:
            given.append(make.number(number))
    computed: dict[int, int] = {}
    for node in run.nodes:
        operands: list[int] = []
        for slot, operand in enumerate(operands_of(body.nodes[node])):
            if (node, slot) in inputs:
                operands.append(given[inputs[node, slot]])
            else:
                assert isinstance(operand, Value)
                operands.append(computed[operand.node])
        type = body.nodes[node].type
        values = dict(zip("xy", operands, strict=False))
        values |= {name: make.number(number) for name, number in type.attributes}
        computed[node] = make.expression(type.op.scalar, **values)
    stores = []
    for node in run.stores:
        position = parts.whole(node)
        place = places.setdefault(position[0], len(places))
        column = columns.setdefault(position, len(columns))
        stores.append(Store(computed[node], place, (NEXT,), column=column))
    kernel = Kernel(1, 0, (Place(),) * len(places), make.instructions, tuple(stores))

    def encode(link: Any) -> KernelStep:
        positions = [
            link.result(0) if of is None else link.at(Value(of) if isinstance(of, int) else of) for of in places
        ]
        return link.kernel_step(kernel, run.size, positions, [column for _, column in columns])

    return Native(encode, tuple(loaded), run.stores)


@dataclass(frozen=True)
class Parts:
    """What is part of a larger row."""

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


def _position(operand: Operand, parts: Parts) -> Position:
    """Where the entries of an operand begin."""
    if isinstance(operand, ParameterSpec):
        return operand, 0
    of, begin = parts.whole(operand.node)
    if operand.view is not None:
        whole = np.empty((2, *operand.view.root.shape), np.float32)
        begin += contiguous_columns(whole, operand.view.look(whole))[0]
    return of, begin


def _entries(body: Body, operand: Operand) -> int:
    return operand.size if isinstance(operand, ParameterSpec) else spec_of_value(body, operand).size


def _number(body: Body, operand: Operand) -> float | None:
    """The number that a constant operand is, None if it is none."""
    if isinstance(operand, Value) and operand.view is None:
        node = body.nodes[operand.node]
        if node.type.op.name in ("zeros", "ones"):
            return float(node.type.op.name == "ones")
        if node.value is not None and np.ndim(node.value) == 0 and np.isfinite(node.value):
            return float(node.value)
    return None
