"""Products of vectors and matrices."""

# ruff: noqa: D103 (they are PyTorch's)
from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

import edbatch as eb
from edbatch.torch.recording import lift, node
from edbatch.torch.registry import refused, register


@register(F.linear)
def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    x, W, b = node(input), lift(weight), lift(bias)
    axes = len(x.spec.shape)
    if axes == 1:
        return eb.matmul(W, x) if b is None else eb.affine(W, x, b)
    if axes == 2 and x.spec.shape[0] == 1 and len(W.shape) == 2:  # [1, d] costs what [d] does
        return eb.unsqueeze(linear(eb.squeeze(x, 0), W, b), 0)
    y = eb.matmul(x, W.T)
    return y if b is None else eb.add(y, b)


@register(torch.matmul, methods="matmul")
def matmul(input: Any, other: Any) -> Any:
    a, b = lift(input), lift(other)
    if len(a.shape) == 2 and a.shape[0] == 1 and isinstance(a, eb.Expression) and len(b.shape) == 2:
        return eb.unsqueeze(eb.matmul(eb.squeeze(a, 0), b), 0)
    return eb.matmul(a, b)


def _of_axes(name: str, first: int, second: int) -> None:
    """`matmul` of operands of so many axes."""

    def handler(input: Any, other: Any) -> Any:
        a, b = lift(input), lift(other)
        if (len(a.shape), len(b.shape)) != (first, second):
            raise refused(f"torch.{name} of {list(a.shape)} and {list(b.shape)}", f"expected {first} and {second} axes")
        return matmul(a, b)

    register(getattr(torch, name), methods=name)(handler)


_of_axes("mm", 2, 2)
_of_axes("mv", 2, 1)
_of_axes("bmm", 3, 3)
_of_axes("dot", 1, 1)


@register(torch.outer, torch.ger, methods="outer ger")
def outer(input: Any, vec2: Any) -> Any:
    return eb.unsqueeze(node(input), 1) * eb.unsqueeze(node(vec2), 0)


def _added(name: str) -> None:
    """A product that is added to something."""
    product = {"addmm": torch.mm, "addmv": torch.mv, "baddbmm": torch.bmm}[name]

    def handler(input: Any, left: Any, right: Any, *, beta: float = 1, alpha: float = 1) -> Any:
        from edbatch.torch.registry import HANDLERS

        y, x = HANDLERS[product](left, right), lift(input)
        return (y if alpha == 1 else y * alpha) + (x if beta == 1 else x * beta)

    register(getattr(torch, name), methods=name)(handler)


for _name in ("addmm", "addmv", "baddbmm"):
    _added(_name)


@register(F.bilinear)
def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    a, b, W = node(input1), node(input2), node(weight)
    size, rows, columns = W.shape
    # All products with `a` at once: [..., rows] by [rows, size * columns].
    flat = eb.reshape(eb.transpose(W, (1, 0, 2)), (rows, size * columns))
    y = eb.reshape(eb.matmul(a, flat), (*a.shape[:-1], size, columns))
    found = eb.sum(y * eb.unsqueeze(b, len(b.shape) - 1), -1)
    return found if bias is None else found + lift(bias)
