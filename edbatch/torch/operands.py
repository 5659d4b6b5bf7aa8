"""What a cell is given: tensors, also in tuples and lists, and the form that they are in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from edbatch.torch.recording import Recording, lift, node
from edbatch.torch.unread import Unread


def operands_of(recording: Recording, args: Any, operands: list[Any], marked: bool) -> Any:
    """Append what a cell computes with to `operands`, tensors in the arguments.

    Args:
        marked: whether it was asked for, so that there are integers, and the rest is refused later.

    Returns:
        What tells where they were; None: there is something else besides.
    """
    form: list[Any] = []
    for x in args:
        kind = x.__class__
        if kind is recording.lazy:
            operands.append(x)
            form.append(0)
        elif x is None:
            form.append(None)
        elif kind is tuple or kind is list:
            parts = operands_of(recording, x, operands, marked)
            if parts is None:
                return None
            form.append((kind, parts))
        elif isinstance(x, torch.Tensor):
            with torch._C.DisableTorchFunction():  # each question to it would go through the mode
                operand = _operand(x)
            if operand is None:
                return None
            operands.append(operand)
            form.append(0)
        elif marked and not isinstance(x, Unread):
            operands.append(lift(x))
            form.append(0)
        else:
            return None
    return tuple(form)


def _operand(x: torch.Tensor) -> Any:
    """A tensor of floats as an expression, one integer as it is; None: neither."""
    if not x.is_floating_point():
        return None if x.ndim or x.dtype is torch.bool else x.item()
    return node(x) if x.numel() else None


def built(form: Any, operands: Iterator[Any]) -> list[Any]:
    """Arguments of a form, of other operands."""
    return [
        next(operands) if part == 0 else None if part is None else part[0](built(part[1], operands)) for part in form
    ]


def count_of(form: Any) -> int:
    """How many operands are in a form."""
    return sum(1 if part == 0 else 0 if part is None else count_of(part[1]) for part in form)
