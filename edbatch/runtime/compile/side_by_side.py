"""Types that put their operands side by side, of which there may be thousands: no step is taken for each.

The operands' rows are gathered one after the other. That is the result, or (of operands of one shape, along an inner
axis) the result is a transposition of it; and one of its gradient has theirs one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from edbatch.graph.node_type import NodeType, node_type
from edbatch.graph.ops.place import CONCATENATE, STACK
from edbatch.graph.ops.shape import TRANSPOSE
from edbatch.graph.spec import Shape, Spec, spec_of
from edbatch.kernels.program import ALWAYS, ARGUMENT_OF, POSITION, RESULT, SLOT, STEP
from edbatch.runtime.compile.tables import Fixed, Tables

_NO_STEPS, _NO_PLACES, _NOTHING = np.zeros(0, STEP), np.zeros(0, POSITION), Fixed((), (), (), ())


def gathered(type: NodeType) -> tuple[NodeType | None, NodeType | None] | None:
    """What a type does if it only puts nodes side by side.

    Returns:
        The type that makes the result of its operands, one after the other, and the type that makes these of the
        result, and their gradients of its gradient. None in their place: they are the same. None: it does more, or
        pieces of several sizes alternate.
    """
    operands, dtype = type.operands, type.out.dtype
    if (type.op is not STACK and type.op is not CONCATENATE) or type.parameters:
        return None
    ((_, axis),), shape = type.attributes, operands[0].shape
    if math.prod(shape[:axis]) == 1:
        return None, None
    count = len(operands)
    if operands.count(operands[0]) < count:  # of one shape, they have one spec
        return None
    inner, apart = range(axis + 1, len(shape) + 1), (*shape[:axis], count, *shape[axis:])
    result = _turned((count, *shape), (*range(1, axis + 1), 0, *inner), dtype)
    return result, _turned(apart, (axis, *range(axis), *inner), dtype)


def _turned(shape: Shape, axes: tuple[int, ...], dtype: np.dtype) -> NodeType:
    return node_type(TRANSPOSE, (("axes", axes),), (spec_of(shape, dtype),))


def moved(sizes: Sequence[int], out: Spec, rest: Tables | None = None) -> Tables:
    """The program that has arguments of these sizes moved to the result's row, one after the other.

    Args:
        rest: what makes the result of them, a program whose one argument they are the parts of.
    """
    first, count = 0 if rest is None else len(rest.slots), len(sizes)
    slots, arguments = np.zeros(first + count, SLOT), np.zeros(count, ARGUMENT_OF)
    arguments["slot"], arguments["entries"], arguments["move"] = np.arange(first, first + count), sizes, ALWAYS
    parts = slots[first:]
    if rest is None:
        parts["storage"] = RESULT
        rest = Tables(slots, arguments, _NO_STEPS, _NO_PLACES, 0, 0, out.size, 1, out.dtype.itemsize, -1, _NOTHING)
    else:
        slots[:first] = rest.slots
        parts[:] = rest.slots[rest.arguments["slot"]]  # in scratch memory
    parts["column"][1:] = arguments["entries"].cumsum()[:-1]
    return rest._replace(slots=slots, arguments=arguments)
