"""The step of the numbers of the largest entries along an axis."""

from __future__ import annotations

from typing import Any

from edbatch.graph.cell.body import Body, Value, operands_of
from edbatch.graph.cell.passes.entries import by_rows
from edbatch.kernels.language.ir import RUN, Kernel, Load, Place, StoreLargest
from edbatch.kernels.program import KernelStep
from edbatch.runtime.compile.placed_steps import kinds, lies_at
from edbatch.runtime.compile.steps import CellStep


def largest_step(body: Body, number: int) -> list[CellStep] | None:
    """The step of a node that numbers the largest entries; None of any other."""
    node = body.nodes[number]
    if node.type.op.name != "top_k":
        return None
    (operand,), attributes = operands_of(node), dict(node.type.attributes)
    shape, axis = node.type.operands[0].shape, attributes["axis"]
    axes = [at for at, size in enumerate(shape) if at != axis and size != 1] + [axis]
    into = by_rows(node.type.out.shape)

    def encode(link: Any) -> KernelStep:
        root, lies, first = lies_at(body, operand, link)
        source, target = tuple(lies[at] for at in axes), tuple(into[at] for at in axes)
        store = StoreLargest(0, 1, kinds(target), count=1)
        places = (Place(), Place())
        kernel = Kernel(len(axes) - 1, 1, places, (Load(0, kinds(source), 0),), (store,), dtype=body.dtype.name)
        runs = [stride for stride in (*source, *target) if kinds((stride,)) == (RUN,)]
        positions, words = [link.at(root), link.at(Value(number))], [*runs, first, attributes["k"]]
        step: KernelStep = link.kernel_step(kernel, [shape[at] for at in axes], positions, words)
        return step

    return [CellStep(encode, (operand,), (number,))]
