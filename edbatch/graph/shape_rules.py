"""Whether the shape rule of an op says what it computes.

Kernels are made for the shape that a type says. One that is too large would be of memory that nobody wrote.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from edbatch.errors import EdBatchError, shown
from edbatch.graph.op import Kind, Op
from edbatch.graph.spec import MOST_AXES, Shape


def checked_result(op: Op, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
    """The result shape of an op by its rule; an error if operands do not fit, or it computes another one.

    That of a composite is compared when it is opened.
    """
    shape = op.shape(*shapes, **attributes)
    if not isinstance(shape, tuple) or not all(isinstance(n, int | np.integer) and n > 0 for n in shape):
        raise EdBatchError(f"its shape rule: expected a tuple of positive integers, got {shown(shape)}")
    if len(shape) > MOST_AXES:
        return shape  # which is refused as any value of so many axes
    if op.kind is Kind.VIEW:
        shown_shape = op.forward(np.empty((1, *shapes[0]), np.int8), **attributes).shape[1:]
        if shown_shape != shape:
            raise EdBatchError(f"its shape rule gives {_text(shape)}, but it shows {_text(shown_shape)}")
    elif op.places is not None:
        if not is_ours(op.shape) or not is_ours(op.places):  # which are compared in tests: there may be many operands
            compare_places(op, shapes, attributes, shape)
    elif op.segments or (op.scalar and not op.reduction and all(operand == shape for operand in shapes)):
        return shape
    elif op.scalar or op.reduction or op.picks:
        computed = _computed(op, shapes, attributes, shape)
        if shape not in computed:
            raise EdBatchError(f"its shape rule gives {_text(shape)}, but it computes {_text(computed[0])}")
    return shape


def compare_places(op: Op, shapes: Sequence[Shape], attributes: Mapping[str, Any], shape: Shape) -> None:
    """Raise an error if the parts of a result are not the operands, or not all of it."""
    assert op.places is not None
    parts = op.places(np.broadcast_to(np.zeros(()), (1, *shape)), shapes=list(shapes), **attributes)
    if [part.shape[1:] for part in parts] != list(shapes) or sum(part.size for part in parts) != math.prod(shape):
        raise EdBatchError(f"its shape rule gives {_text(shape)}, which is not the operands side by side")


def is_ours(function: Any) -> bool:
    """Whether a function is of this package."""
    return bool(getattr(function, "__module__", "").startswith("edbatch."))


def _computed(op: Op, shapes: Sequence[Shape], attributes: Mapping[str, Any], shape: Shape) -> list[Shape]:
    """The shapes that a result may have."""
    if op.reduction:
        axes = attributes["axes"]
        kept = [1 if axis in axes else n for axis, n in enumerate(shapes[0])]
        return [tuple(n for axis, n in enumerate(shapes[0]) if axis not in axes), tuple(kept)]
    if op.picks:
        return [shapes[1] if len(shapes) > 1 else shapes[0][1:]]
    try:  # what is not element-wise may say the same at several entries
        return [np.broadcast_shapes(*shapes, *(() if op.elementwise else (shape,)))]
    except ValueError:
        raise EdBatchError(f"its shape rule gives {_text(shape)}, but its operands do not broadcast to it") from None


def _text(shape: Shape) -> str:
    return f"[{','.join(map(str, shape))}]"
