"""What puts entries where an index says: each along one axis, one after the other."""

from __future__ import annotations

from typing import Any

from edbatch.graph.cell.body import Body, Value, operands_of
from edbatch.graph.cell.passes.entries import by_rows
from edbatch.kernels.language.build import Builder
from edbatch.kernels.language.ir import RUN, Index, Kernel, Load, Place, StoreAt, Whole
from edbatch.kernels.program import KernelStep
from edbatch.runtime.compile.placed_steps import filled_step, kinds, lies_at
from edbatch.runtime.compile.steps import CellStep


def indexed_steps(body: Body, number: int) -> list[CellStep] | None:
    """The steps of a node that adds values, or notes numbers, where an index says; None of any other."""
    if body.nodes[number].type.op.name not in ("added_at", "last_at"):
        return None
    return [filled_step(body, number, 0.0), _stored(body, number)]


def _stored(body: Body, number: int) -> CellStep:
    """Go through the entries of the index along its axis, for each place along the others."""
    node = body.nodes[number]
    operands, out, attributes = operands_of(node), node.type.out, dict(node.type.attributes)
    shape, axis = node.type.operands[0].shape, attributes["axis"]
    axes = [at for at, size in enumerate(shape) if at != axis and size != 1] + [axis]
    into = by_rows(out.shape)

    def encode(link: Any) -> KernelStep:
        make, runs, positions, firsts = Builder(), [], [], []
        for place, operand in enumerate(operands):
            root, lies, first = lies_at(body, operand, link)
            strides = tuple(lies[at] for at in axes)
            make.add(Load(place, kinds(strides), place))
            runs += [stride for stride in strides if kinds((stride,)) == (RUN,)]
            positions.append(link.at(root))
            firsts.append(first)
        named = make.expression("i if i >= 0 and i < n else -1", i=0, n=make.add(Whole(len(operands))))
        adds = len(operands) > 1
        value = 1 if adds else make.compute("add", make.add(Index(len(axes) - 1)), make.number(1))
        strides = (*(into[at] for at in axes[:-1]), 0)
        (along,) = kinds((into[axis],))
        store = StoreAt(value, len(operands), kinds(strides), adds, index=named, along=along)
        runs += [stride for stride in (*strides, into[axis]) if kinds((stride,)) == (RUN,)]
        places = (Place(),) * (len(operands) + 1)
        kernel = Kernel(len(axes) - 1, 1, places, make.instructions, (store,), dtype=body.dtype.name)
        sizes, words = [shape[at] for at in axes], [*runs, *firsts, out.shape[axis]]
        step: KernelStep = link.kernel_step(kernel, sizes, [*positions, link.at(Value(number))], words)
        return step

    return CellStep(encode, operands, (number,))
