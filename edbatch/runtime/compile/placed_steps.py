"""What puts entries somewhere: operands on inner axes, with gaps, reversed; values where an index says; the largest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from edbatch.graph.cell.body import Body, Value
from edbatch.graph.cell.passes.entries import Strides, along, breaks, by_rows, divided, parts_shown, seen, shown
from edbatch.graph.cell.passes.goes_through import LENGTH
from edbatch.graph.cell.type_body import places_of
from edbatch.graph.ops.shape import INDEX
from edbatch.graph.spec import Shape
from edbatch.kernels.language.build import Builder
from edbatch.kernels.language.ir import (
    NEXT,
    RUN,
    SAME,
    Index,
    Kernel,
    Load,
    Place,
    Store,
    StoreLargest,
    Whole,
)  # fmt: skip
from edbatch.kernels.program import Step
from edbatch.runtime.compile.steps import CellStep


def placed_steps(body: Body, number: int, homes: Mapping[int, tuple[int, int]]) -> list[CellStep] | None:
    """The steps of a node that only puts something somewhere; None of any other.

    Args:
        homes: of operands that are there already, see `places.Parts`.
    """
    node = body.nodes[number]
    op, attributes, out = node.type.op, dict(node.type.attributes), node.type.out
    if op.name in ("added_at", "last_at"):
        return [_filled(body, number, 0.0), _through_axis(body, number)]
    if op.name == "top_k":
        return [_through_axis(body, number)]
    if op.name == "embed":
        place = shown(lambda x: INDEX.forward(x, attributes["index"]), out.shape, by_rows(out.shape))
        return [_filled(body, number, attributes["fill"]), _copy(body, node.operands[0], number, place)]
    parts = places_of(node.type)
    if parts is None:
        return None
    places = parts_shown(parts, out.shape, by_rows(out.shape))
    return [
        _copy(body, operand, number, place)
        for operand, place in zip(node.operands, places, strict=True)
        if homes.get(operand.node) != (number, place[2])
    ]


def kinds(strides: Strides) -> Strides:
    """What a kernel knows of strides."""
    return tuple([stride if stride in (SAME, NEXT) else RUN for stride in strides])


def told(strides: Strides) -> list[int]:
    """Those that it does not know: the first of its words."""
    return [stride for stride in strides if stride not in (SAME, NEXT)]


def _filled(body: Body, number: int, fill: float) -> CellStep:
    """Write one number to all entries of a node's value."""
    out = body.nodes[number].type.out
    axes = [LENGTH, out.size] if out.each else [out.size]

    def encode(link: Any) -> Step:
        load, store = Load(0, (SAME,) * len(axes)), Store(0, 1, kinds((*[0] * out.each, 1)))
        places, lists = (Place(once=True), Place(out.each)), 0 if out.each else None
        kernel = Kernel(len(axes), 0, places, (load,), (store,), lists, link.dtype)
        return link.kernel_step(kernel, axes, [link.numbers([fill]), link.at(Value(number))], [])

    return CellStep(encode, (), (number,))


def _lies_at(body: Body, operand: Value, link: Any) -> tuple[Value, Strides, int]:
    """Of what an operand is seen, and where its entries lie there: strides along its axes, and the first."""
    _, lies, first = seen(operand.view, body.nodes[operand.node].type.out.shape, link.strides(operand))
    return Value(operand.node), lies, first


def _copy(body: Body, operand: Value, number: int, to: tuple[Shape, Strides, int]) -> CellStep:
    """Copy an operand to a part of a node's value: to strides along the operand's axes, from a first entry on."""
    shape, strides, begin = to
    each = [body.nodes[x].type.out.each for x in (operand.node, number)]

    def encode(link: Any) -> Step:
        root, lies, first = _lies_at(body, operand, link)
        (sizes,) = divided((math.prod(shape),), breaks(shape, [lies, strides])) or [[]]
        source, target = along(shape, lies, sizes), along(shape, strides, sizes)
        assert source is not None
        assert target is not None
        lists = None
        if each[1]:
            sizes, source, target, lists = [LENGTH, *sizes], (0, *source), (0, *target), 0
        load, store = Load(0, kinds(source), 0), Store(0, 1, kinds(target), column=1)
        kernel = Kernel(len(sizes), 0, (Place(each[0]), Place(each[1])), (load,), (store,), lists, link.dtype)
        positions = [link.at(root), link.at(Value(number))]
        return link.kernel_step(kernel, sizes, positions, [*told((*source, *target)), first, begin])

    return CellStep(encode, (operand,), (number,))


def _through_axis(body: Body, number: int) -> CellStep:
    """Go through an axis, for each place along the others: put entries where an index says, or number the largest."""
    node = body.nodes[number]
    operands, out, attributes = node.operands, node.type.out, dict(node.type.attributes)
    shape, axis = node.type.operands[0].shape, attributes["axis"]
    axes = [at for at, size in enumerate(shape) if at != axis and size != 1] + [axis]
    into = by_rows(out.shape)

    def encode(link: Any) -> Step:
        make, read, positions, firsts = Builder(), list[int](), [], []
        for place, operand in enumerate(operands):
            root, lies, first = _lies_at(body, operand, link)
            lies = tuple([lies[at] for at in axes])
            make.add(Load(place, kinds(lies), place))
            read += lies
            positions.append(link.at(root))
            firsts.append(first)
        some, written = len(operands), tuple([into[at] for at in axes])
        store: Store | StoreLargest
        if node.type.op.name == "top_k":
            store, count = StoreLargest(0, some, kinds(written), count=some), attributes["k"]
        else:
            named = make.expression("i if i >= 0 and i < n else -1", i=0, n=make.add(Whole(some)))
            adds, count = some > 1, out.shape[axis]
            value = 1 if adds else make.compute("add", make.add(Index(len(axes) - 1)), make.number(1))
            written = (*written[:-1], 0, into[axis])
            *strides, along = kinds(written)
            store = Store(value, some, tuple(strides), adds, index=named, along=along)
        kernel = Kernel(len(axes) - 1, 1, (Place(),) * (some + 1), make.instructions, (store,), dtype=link.dtype)
        words = [*told((*read, *written)), *firsts, count]
        return link.kernel_step(kernel, [shape[at] for at in axes], [*positions, link.at(Value(number))], words)

    return CellStep(encode, operands, (number,))
