"""What puts operands where entries do not follow one another in a value: on inner axes, with gaps, reversed."""

from __future__ import annotations

import math
from typing import Any

from edbatch.graph.cell.body import Body, Value, operands_of
from edbatch.graph.cell.passes.entries import Strides, along, breaks, by_rows, divided, parts_shown, shown
from edbatch.graph.cell.type_body import places_of
from edbatch.graph.ops.shape import INDEX
from edbatch.graph.spec import ParameterSpec, Shape
from edbatch.kernels.language.ir import NEXT, RUN, SAME, Kernel, Load, Place, Store
from edbatch.kernels.program import KernelStep
from edbatch.runtime.compile.steps import CellStep, Operand


def placed_steps(body: Body, number: int) -> list[CellStep] | None:
    """The steps of a node that only puts its operands somewhere; None of any other."""
    node = body.nodes[number]
    op, attributes, out = node.type.op, dict(node.type.attributes), node.type.out
    if op.name == "embed":
        place = shown(lambda x: INDEX.forward(x, attributes["index"]), out.shape, by_rows(out.shape))
        return [filled_step(body, number, attributes["fill"]), _copy(body, operands_of(node)[0], number, place)]
    parts = places_of(node.type)
    if parts is None:
        return None
    places = parts_shown(parts, out.shape, by_rows(out.shape))
    return [_copy(body, operand, number, place) for operand, place in zip(operands_of(node), places, strict=True)]


def kinds(strides: Strides) -> Strides:
    """What a kernel knows of strides."""
    return tuple({0: SAME, 1: NEXT}.get(stride, RUN) for stride in strides)


def filled_step(body: Body, number: int, fill: float) -> CellStep:
    """Write one number to all entries of a node's value."""
    places, load, store = (Place(once=True), Place()), Load(0, (SAME,)), Store(0, 1, (NEXT,))
    kernel = Kernel(1, 0, places, (load,), (store,), dtype=body.dtype.name)

    def encode(link: Any) -> KernelStep:
        positions = [link.numbers([fill]), link.at(Value(number))]
        step: KernelStep = link.kernel_step(kernel, [body.nodes[number].type.out.size], positions, [])
        return step

    return CellStep(encode, (), (number,))


def lies_at(body: Body, operand: Operand, link: Any) -> tuple[Operand, Strides, int]:
    """Of what an operand is seen, and where its entries lie there: strides along its axes, and the first."""
    root: Operand = operand
    look = None
    if isinstance(operand, Value):
        root = Value(operand.node)
        look = None if operand.view is None else operand.view.look
    spec = root if isinstance(root, ParameterSpec) else body.nodes[root.node].type.out
    _, lies, first = shown(look, spec.shape, link.strides(operand))
    return root, lies, first


def _copy(body: Body, operand: Operand, number: int, to: tuple[Shape, Strides, int]) -> CellStep:
    """Copy an operand to a part of a node's value: to strides along the operand's axes, from a first entry on."""
    shape, strides, begin = to

    def encode(link: Any) -> KernelStep:
        root, lies, first = lies_at(body, operand, link)
        (sizes,) = divided((math.prod(shape),), breaks(shape, [lies, strides])) or [[]]
        source, target = along(shape, lies, sizes), along(shape, strides, sizes)
        assert source is not None
        assert target is not None
        load, store = Load(0, kinds(source), 0), Store(0, 1, kinds(target), column=1)
        kernel = Kernel(len(sizes), 0, (Place(), Place()), (load,), (store,), dtype=body.dtype.name)
        runs = [stride for stride in (*source, *target) if kinds((stride,)) == (RUN,)]
        positions = [link.at(root), link.at(Value(number))]
        step: KernelStep = link.kernel_step(kernel, sizes, positions, [*runs, first, begin])
        return step

    return CellStep(encode, (operand,), (number,))
