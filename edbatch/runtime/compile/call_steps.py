"""Single ops as kernels of their own, on devices that have such: whatever is no product, fused run or plain copy."""

from __future__ import annotations

from typing import Any

import numpy as np

from edbatch.graph.cell.body import Body, Node, Value, operands_of, spec_of_value
from edbatch.graph.op import Kind
from edbatch.graph.spec import ParameterSpec, Shape
from edbatch.kernels.call import Call, Layout, by_rows
from edbatch.kernels.program import CallStep
from edbatch.runtime.compile.steps import Native, Operand, PartsOf

# Where the entries of a row lie, and the column that the first of them is in.
Lying = tuple[Layout, int]


def call_steps(body: Body, number: int, parts_of: PartsOf, backend: Any) -> list[Native] | None:
    """The kernels that compute a node; None if the device has none for it."""
    node = body.nodes[number]
    op, operands = node.type.op, operands_of(node)
    parts = parts_of(node.type)
    given = ("copy", "", 1) if parts is not None or op.kind is Kind.VIEW else (op.name, op.scalar, len(operands))
    if not backend.loops.computes(*given):
        return None
    if parts is not None:
        whole = np.empty((1, *node.type.out.shape), np.int8)
        shown = [_lying(whole, part) for part in parts(whole)]
        return [_copy(body, operand, part, number, backend) for operand, part in zip(operands, shown, strict=True)]
    if op.kind is Kind.VIEW:
        return [_view(body, number, node, backend)]
    return [_call(body, number, node, backend)]


def copy_any(body: Body, value: Value, column: int, backend: Any) -> Native | None:
    """A copy of a value, however it lies, to a column of the cell's result; None if the device has no kernel."""
    if not backend.loops.computes("copy", "", 1):
        return None
    return _copy(body, value, (_by_rows(spec_of_value(body, value).shape), column), None, backend)


def _call(body: Body, number: int, node: Node, backend: Any) -> Native:
    type, operands = node.type, operands_of(node)

    def encode(link: Any) -> CallStep:
        lying = [_of_operand(body, operand, link) for operand in operands]
        listed, constant = -1, None
        if node.payload:
            (given,) = node.payload
            listed, constant = (-1 - given, None) if given < 0 else (-1, given)
        layouts = tuple(layout for layout, _ in lying)
        out = _by_rows(type.out.shape)
        call = Call(type.op.name, type.op.scalar, type.attributes, layouts, out, constant, body.dtype.name)
        positions = [_position(operand, column, link) for operand, (_, column) in zip(operands, lying, strict=True)]
        return _encoded(call, [*positions, link.at(Value(number))], listed, link, backend)

    return Native(encode, operands, (number,))


def _copy(body: Body, operand: Operand, to: Lying, number: int | None, backend: Any) -> Native:
    """Copy an operand to a part of a node's value, or (None) of the cell's result."""
    out, begin = to

    def encode(link: Any) -> CallStep:
        layout, column = _of_operand(body, operand, link)
        slot, at = link.result(0) if number is None else link.at(Value(number))
        positions = [_position(operand, column, link), (slot, at + begin)]
        return _encoded(_copying(body, layout, out), positions, -1, link, backend)

    return Native(encode, (operand,), () if number is None else (number,))


def _view(body: Body, number: int, node: Node, backend: Any) -> Native:
    """The copy that a view is where memory does not allow it: of the operand's entries, as the view shows them."""
    (operand,) = node.operands
    whole = np.empty((1, *spec_of_value(body, operand).shape), np.int8)
    shown, begin = _lying(whole, node.type.op.forward(whole, **dict(node.type.attributes)))

    def encode(link: Any) -> CallStep:
        layout, column = _of_operand(body, operand, link)
        layout = Layout(shown.shape, shown.strides, begin, layout)
        positions = [_position(operand, column, link), link.at(Value(number))]
        return _encoded(_copying(body, layout, _by_rows(node.type.out.shape)), positions, -1, link, backend)

    return Native(encode, (operand,), (number,))


def _copying(body: Body, layout: Layout, out: Layout) -> Call:
    return Call("copy", "", (), (layout,), out, dtype=body.dtype.name)


def _encoded(call: Call, positions: list[tuple[int, int]], listed: int, link: Any, backend: Any) -> CallStep:
    work = backend.loops.work_of(call)
    place, places = link.place_list(positions)
    return CallStep(link.kernel(call), place, places, work.groups, work.lanes, listed)


def _position(operand: Operand, column: int, link: Any) -> tuple[int, int]:
    """Slot and column of an operand's first entry."""
    slot, begin = link.at(Value(operand.node) if isinstance(operand, Value) else operand)
    return slot, begin + column


def _of_operand(body: Body, operand: Operand, link: Any) -> Lying:
    """How an operand lies; the column counts from the row that it is a part of."""
    strides = link.strides(operand)
    if isinstance(operand, ParameterSpec):
        return Layout(operand.shape, strides), 0
    root = body.nodes[operand.node].type.out.shape
    if operand.view is None:
        return Layout(root, strides), 0
    whole = np.empty((1, *root), np.int8)
    shown, begin = _lying(whole, operand.view.look(whole))
    if all(size == 1 or a == b for size, a, b in zip(root, strides, by_rows(root), strict=True)):
        return shown, begin
    return Layout(shown.shape, shown.strides, begin, Layout(root, strides)), 0


def _lying(whole: np.ndarray, part: np.ndarray) -> Lying:
    """How a part of a row of one-byte entries lies in it."""
    begins = [array.__array_interface__["data"][0] for array in (whole, part)]
    return Layout(part.shape[1:], part.strides[1:]), begins[1] - begins[0]


def _by_rows(shape: Shape) -> Layout:
    return Layout(shape, by_rows(shape))
