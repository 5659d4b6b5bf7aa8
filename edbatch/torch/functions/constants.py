"""Constructors of tensors like a lazy one, and conversions that do nothing on the CPU in one dtype."""

# ruff: noqa: D103 (they are PyTorch's)
from __future__ import annotations

import copy
from typing import Any

import torch

import edbatch as eb
from edbatch.torch.recording import node
from edbatch.torch.registry import refused, register


def _like(function: Any) -> Any:
    """Of a lazy tensor's shape, an ordinary tensor."""

    def handler(
        input: Any, *args: Any, dtype: Any = None, device: Any = None, memory_format: Any = None, **kwargs: Any
    ) -> Any:
        return function(tuple(input.shape), *args, dtype=dtype or input.dtype, **kwargs)

    return handler


def _new(function: Any) -> Any:
    def handler(self: Any, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
        return function(*size, dtype=dtype or self.dtype, requires_grad=requires_grad)

    return handler


for _name in ("zeros", "ones", "full", "rand", "randn", "empty"):
    register(getattr(torch, f"{_name}_like"))(_like(getattr(torch, _name)))
for _name in ("zeros", "ones", "full", "tensor"):
    register(methods=f"new_{_name}")(_new(getattr(torch, _name)))
register(methods="new")(lambda self, *size: torch.empty(0, dtype=self.dtype).new(*size))
register(torch.numel)(lambda input: node(input).spec.size)
register(torch.is_floating_point, methods="is_floating_point")(lambda input: True)
register(torch.is_complex, methods="is_complex")(lambda input: False)


@register(methods="to")
def to(input: Any, *args: Any, **kwargs: Any) -> Any:
    if isinstance(input, torch.Tensor):  # to what a lazy one is of
        return input.to(*[x.dtype if isinstance(x, eb.Expression) else x for x in args], **kwargs)
    known = {"non_blocking", "memory_format", "copy"}
    for x in (*args, *(x for name, x in kwargs.items() if name not in known)):
        dtype, device = (x.dtype, x.device) if hasattr(x, "layout") else (x, x)
        wrong = isinstance(dtype, torch.dtype) and dtype is not input.dtype
        if wrong or (isinstance(device, str | torch.device) and torch.device(device).type != "cpu"):
            raise refused(f"to({x})", "one dtype, on the CPU, is computed with; convert the module instead")
    return copy.copy(input) if kwargs.get("copy") else input


def _of_dtype(name: str, dtype: torch.dtype) -> None:
    register(methods=name)(lambda input: to(input, dtype))


_of_dtype("float", torch.float32)
_of_dtype("double", torch.float64)
register(methods="type_as")(lambda input, other: to(input, other.dtype))
register(methods="cpu")(lambda input: input)


@register(torch.clone, methods="clone")
def clone(input: Any, *, memory_format: Any = None) -> Any:
    return copy.copy(node(input))


register(methods="contiguous", view=True)(lambda input, memory_format=None: node(input))
register(torch.detach, methods="detach data", view=True)(lambda input: eb.stop_gradient(node(input)))


@register(methods="requires_grad_")
def requires_grad_(input: Any, requires_grad: bool = True) -> Any:
    if not requires_grad:
        raise refused("requires_grad_(False)", "x.detach() lets no gradient through")
    return input
