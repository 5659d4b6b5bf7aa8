"""Types that put their operands side by side, of which there may be thousands: no step is taken for each.

The operands' rows are gathered one after the other. That is the result, or (of operands of one shape, along an inner
axis) the result is a view of it; and of its gradient, a view shows theirs one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from edbatch.graph.cell.body import Body, Node, Value
from edbatch.graph.cell.trace import argument_type
from edbatch.graph.node_type import NodeType
from edbatch.graph.ops.place import CONCATENATE, STACK
from edbatch.graph.ops.shape import RESHAPE, TRANSPOSE
from edbatch.graph.spec import Spec, spec_of
from edbatch.graph.views import View, view_of
from edbatch.kernels.program import ARGUMENT_OF, POSITION, SLOT, Move, Storage, step_table
from edbatch.runtime.compile.linked import Fixed, Linked

_NO_STEPS, _NO_PLACES, _NOTHING = step_table([]), np.zeros(0, POSITION), Fixed((), (), (), (), ())


class Gathered(NamedTuple):
    """The operands of a type, one after the other.

    Attributes:
        spec: of all of them.
        result: what shows the entries of the result in their order; None: they lie so.
        operands: what shows, of the result, the entries of the operands in their order; None: they lie so.
    """

    spec: Spec
    result: View | None
    operands: View | None


def gathered(type: NodeType) -> Gathered | None:
    """What a type does if it only puts nodes side by side; None: it does more, or pieces of several sizes alternate."""
    operands, out = type.operands, type.out
    if (type.op is not STACK and type.op is not CONCATENATE) or type.parameters:
        return None
    ((_, axis),), shape = type.attributes, operands[0].shape
    if math.prod(shape[:axis]) == 1:
        return Gathered(out, None, None)
    count, inner = len(operands), range(axis + 1, len(shape) + 1)
    if operands.count(operands[0]) < count:  # of one shape, they have one spec
        return None
    spec = spec_of((count, *shape), out.dtype)
    result = view_of(spec, 0, TRANSPOSE, (("axes", (*range(1, axis + 1), 0, *inner)),))
    apart = view_of(out, 0, RESHAPE, (("shape_to", (*shape[:axis], count, *shape[axis:])),))
    assert apart is not None
    return Gathered(spec, result, view_of(apart.out, apart.code, TRANSPOSE, (("axes", (axis, *range(axis), *inner)),)))


def seen(spec: Spec, view: View | None) -> Body:
    """What returns its one argument, through a view."""
    return Body((spec,), (Node(argument_type(0, spec), ()),), (Value(0, view),), 0)


def moved(sizes: Sequence[int], out: Spec, rest: Linked | None = None) -> Linked:
    """The program that has arguments of these sizes moved to the result's row, one after the other.

    Args:
        rest: what makes the result of them, a program whose one argument they are the parts of.
    """
    known, count = 0 if rest is None else len(rest.slots), len(sizes)
    slots, arguments = np.zeros(known + count, SLOT), np.zeros(count, ARGUMENT_OF)
    parts = slots[known:]
    arguments["slot"], arguments["entries"], arguments["move"] = np.arange(known, known + count), sizes, Move.ALWAYS
    if rest is not None:
        slots[:known] = rest.slots
        parts[:] = rest.slots[rest.arguments["slot"]]  # in scratch memory
    else:
        parts["storage"] = Storage.RESULT
    parts["column"][1:] = arguments["entries"].cumsum()[:-1]
    if rest is not None:
        return rest._replace(slots=slots, arguments=arguments)
    return Linked(slots, arguments, _NO_STEPS, _NO_PLACES, 0, out.size, 1, out.dtype.itemsize, _NOTHING)
