"""A parameter of PyTorch's and one of EdBatch's that lie in the same memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.utils.parametrize import ParametrizationList

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
            raise EdBatchError(f"edbatch.torch: {self} was set to None; expected an nn.Parameter")
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

    def __repr__(self) -> str:
        return f"parameter {self.ours.name!r}"

    def _lie_with(self, theirs: nn.Parameter) -> None:
        place = f"edbatch.torch: {self}"
        if theirs.device.type != "cpu":
            raise EdBatchError(f"{place} is on {theirs.device}; expected the module on the CPU")
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


class Computed(Weight):
    """A weight that a parametrization of PyTorch's computes of others: once for a mini-batch.

    Args:
        collection: where EdBatch's parameter is added.
        of: the parametrization.
        place: of the weight in the model.

    Raises:
        EdBatchError: it would be another weight for each sample.
    """

    theirs: Any = None

    def __init__(self, collection: eb.ParameterCollection, of: ParametrizationList, place: str) -> None:
        self._of = of
        self._mode: bool | None = None  # in which it is known to be the same each time
        self._values = self._computed(place).detach().clone()
        super().__init__(collection.share(self._values.numpy(), place), of, place)

    def follow(self) -> torch.Tensor:
        """Compute it; what has not changed is the same tensor for threads that share the model in inference."""
        found = self._computed(self._name)
        if not (is_same := torch.equal(found, self._values)):
            self._values.copy_(found.detach())  # cells are not linked anew, as they are where memory moves
            self.ours.touch()
        if torch.is_grad_enabled() or not is_same or self.theirs is None:
            self.theirs = self._theirs = found
            self._pointer, self._version = found.data_ptr(), found._version
        return super().follow()

    def _computed(self, place: str) -> torch.Tensor:
        buffers = [(x, x._version) for x in self._of.buffers()]
        grad, mode = torch.is_grad_enabled(), self._of.training
        with torch.inference_mode(False), torch.set_grad_enabled(grad):
            found: torch.Tensor = self._of().contiguous()
            is_fixed = self._mode is mode or torch.equal(found, self._of())
        if not is_fixed or any(x._version != version for x, version in buffers):
            names = ", ".join(type(part).__name__ for part in self._of)
            raise EdBatchError(
                f"edbatch.torch.Batched: {names}, the parametrization of {place}, changes its buffers or draws numbers "
                "where it is used, so that each sample would have another weight; expected eval() of the module's "
                ".parametrizations, or of the model"
            )
        self._mode = mode
        return found if grad else found.requires_grad_(any(x.requires_grad for x in self._of.parameters()))
