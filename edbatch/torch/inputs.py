"""Tensors of PyTorch as values of EdBatch's graphs."""

from __future__ import annotations

from contextvars import ContextVar
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import nn

import edbatch as eb
from edbatch.errors import EdBatchError


class Inputs:
    """The tensors that a mini-batch computes with, and the expressions that stand for them.

    Args:
        dtype: of the graph.
        owner: the module whose mini-batch it is.

    Attributes:
        dtype: see above.
        tensors, expressions: those through which gradients flow.
    """

    def __init__(self, dtype: np.dtype, owner: nn.Module) -> None:
        self.dtype, self._owner = dtype, owner
        self._grad = torch.is_grad_enabled()
        self.tensors: list[torch.Tensor] = []
        self.expressions: list[eb.Expression] = []
        self._known: dict[int, tuple[torch.Tensor, int, eb.Expression]] = {}

    @cached_property
    def modules(self) -> set[nn.Module]:
        """The module and its submodules."""
        return set(self._owner.modules())

    def of(self, tensor: torch.Tensor) -> eb.Expression:
        """The expression of a tensor of numbers: one for each tensor."""
        known = self._known.get(id(tensor))
        if known is not None and known[1] == _version(tensor):
            return known[2]
        if known is not None and tensor.requires_grad and self._grad:
            raise EdBatchError(
                f"edbatch.torch: a tensor of shape {list(tensor.shape)} that requires a gradient was written to "
                "between two uses in a mini-batch; write x = f(x), which makes another"
            )
        if tensor.device.type != "cpu":
            raise EdBatchError(f"edbatch.torch: a tensor on {tensor.device}: expected it on the CPU, tensor.cpu()")
        try:
            array = tensor.detach().numpy()
        except (RuntimeError, TypeError) as error:  # of a kind that has no memory, or that NumPy does not know
            raise EdBatchError(
                f"edbatch.torch: a {tensor.layout} tensor of {tensor.dtype}: {error}; expected a dense one, of "
                "numbers, outside of torch.func"
            ) from error
        if array.dtype != self.dtype and tensor.is_floating_point():
            raise EdBatchError(
                f"edbatch.torch: a tensor of {tensor.dtype}, shape {list(tensor.shape)}: expected {self.dtype}, as the "
                f"parameters: x.to(torch.{self.dtype}), or all of the other dtype"
            )
        made = eb.input(array)
        self._known[id(tensor)] = tensor, _version(tensor), made
        if tensor.requires_grad and self._grad:
            self.tensors.append(tensor)
            self.expressions.append(made)
        return made

    def lifted(self, given: Any) -> Any:
        """Convert an argument for a function of one sample; see `edbatch.torch.Module`."""
        if isinstance(given, torch.Tensor):
            if given.is_floating_point():
                return self.of(given)
            return given.tolist() if not given.ndim else given.numpy()
        if given.__class__ is tuple or given.__class__ is list:
            for part in given:
                if isinstance(part, torch.Tensor):
                    return given.__class__([self.lifted(part) for part in given])
        elif given.__class__ is dict:
            return {key: self.lifted(part) if isinstance(part, torch.Tensor) else part for key, part in given.items()}
        return given


#: Those of the module that runs.
current: ContextVar[Inputs | None] = ContextVar("edbatch_torch_inputs", default=None)


def input(tensor: torch.Tensor) -> eb.Expression:
    """A tensor as a value of the current graph; in a module's function gradients flow to it.

    Args:
        tensor: of the graph's dtype, on the CPU.

    Raises:
        EdBatchError: no graph is current; or outside of a module's function the tensor requires a gradient, which would
            be lost.

    Example:
        >>> import torch, edbatch as eb, edbatch.torch
        >>> with eb.Graph():
        ...     x = edbatch.torch.input(torch.tensor([1.0, 2.0])) * 2
        >>> x.value()
        array([2., 4.], dtype=float32)
    """
    inputs = current.get()
    if inputs is not None:
        return inputs.of(tensor)
    if tensor.requires_grad and torch.is_grad_enabled():
        raise EdBatchError(
            "edbatch.torch.input: the tensor requires a gradient, which flows through edbatch.torch.Module only; "
            "write tensor.detach(), or call it in a module's function"
        )
    return eb.input(tensor.detach().numpy())


def _version(tensor: torch.Tensor) -> int:
    return -1 if tensor.is_inference() else tensor._version
