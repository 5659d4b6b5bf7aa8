"""A parameter of PyTorch's and one of EdBatch's that lie in the same memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

import edbatch as eb
from edbatch.errors import EdBatchError


class Weight:
    """One array, which both libraries train.

    PyTorch owns the memory, and may write to it, replace it or freeze it between two calls, as optimizers,
    `load_state_dict`, `Module.to` and users do: `follow` finds out.

    Args:
        ours: EdBatch's parameter.
        module, name: where PyTorch's is found.
    """

    def __init__(self, ours: eb.Parameter, module: nn.Module, name: str) -> None:
        self.ours = ours
        self._module = module
        self._name = name
        self._theirs: Any = None
        self._pointer = self._version = -1

    @property
    def theirs(self) -> nn.Parameter:
        """PyTorch's parameter."""
        found = self._module._parameters[self._name]
        if found is None:
            raise EdBatchError(f"edbatch.torch: parameter {self._name!r} was set to None; expected an nn.Parameter")
        return found

    def follow(self) -> nn.Parameter:
        """Have EdBatch see what PyTorch has done to the parameter, and return that.

        Raises:
            EdBatchError: it has another shape, dtype or device than before.
        """
        theirs = self.theirs
        if theirs is not self._theirs or theirs.data_ptr() != self._pointer:
            self._lie_with(theirs)
        elif theirs._version != self._version:
            self._version = theirs._version
            self.ours.touch()
        if self.ours.frozen is theirs.requires_grad:
            self.ours.freeze(not theirs.requires_grad)
        return theirs

    def is_changed(self) -> bool:
        """Whether PyTorch has written to the parameter, or replaced it, since `follow`."""
        theirs = self.theirs
        return theirs is not self._theirs or theirs._version != self._version or theirs.data_ptr() != self._pointer

    def _lie_with(self, theirs: nn.Parameter) -> None:
        place = f"edbatch.torch: parameter {self._name!r}"
        if theirs.device.type != "cpu":
            raise EdBatchError(f"{place} is on {theirs.device}: expected it on the CPU, where EdBatch runs the module")
        dtype = np.dtype(str(theirs.dtype).removeprefix("torch.")) if theirs.is_floating_point() else theirs.dtype
        if tuple(theirs.shape) != self.ours.shape or dtype != self.ours.dtype:
            raise EdBatchError(
                f"{place}: expected {self.ours.dtype} of shape {self.ours.shape}, got {dtype} of {tuple(theirs.shape)}"
            )
        with torch.no_grad():
            if not theirs.is_contiguous():
                theirs.data = theirs.data.contiguous()
            self.ours.move(theirs.detach().numpy())
        self._theirs, self._pointer, self._version = theirs, theirs.data_ptr(), theirs._version
