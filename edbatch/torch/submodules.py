"""What happens where a module calls one of its parts while `Batched` records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import ref

import torch
from torch import nn

import edbatch as eb
from edbatch.torch.cells import operands_of, record
from edbatch.torch.recording import Recording, current, without_gradient
from edbatch.torch.state import is_users

_TRACES = 8


def _linear(recording: Recording, module: Any, x: Any) -> Any:
    """`nn.Linear` of a lazy vector."""
    if x.__class__ is not recording.lazy or len(x.spec.shape) != 1:
        return NotImplemented
    own = module._parameters
    W, b = recording.parameters.get(id(own["weight"])), own["bias"]
    if W is None:
        return NotImplemented
    return eb.matmul(W, x) if b is None else eb.affine(W, x, recording.parameters[id(b)])


def _embedding(recording: Recording, module: Any, index: Any) -> Any:
    """`nn.Embedding` of one number."""
    if recording.origins is not None or recording.is_on or index.__class__ is not torch.Tensor or index.ndim:
        return NotImplemented
    table = recording.parameters.get(id(module._parameters["weight"]))
    is_plain = module.padding_idx is None and module.max_norm is None and not module.scale_grad_by_freq
    if table is None or not is_plain or index.dtype not in (torch.int64, torch.int32) or index < 0:
        return NotImplemented
    return eb.lookup(table, index.item())


#: By class, what is recorded at once; NotImplemented: PyTorch's code is run.
_DIRECT: dict[type, Callable[..., Any]] = {nn.Linear: _linear, nn.Embedding: _embedding}


class Submodule:
    """What PyTorch calls instead of a module's `forward` and hooks, in all threads and for as long as the module lives.

    Where `Batched` records in this thread, a call is a cell if only tensors are given to it, or is recorded at once, of
    layers that are one node. Elsewhere it is what it was.
    """

    __slots__ = ("_direct", "_has_parameters", "_is_cell", "_module")

    def __init__(self, module: nn.Module) -> None:
        kind = type(module)
        is_layer = not is_users(kind) and not module._modules
        self._module = ref(module)
        self._direct = _DIRECT.get(kind)
        self._is_cell = not is_layer or isinstance(module, nn.RNNCellBase)
        self._has_parameters = bool(module._parameters)

    def __call__(self, *args: Any, **given: Any) -> Any:
        """Call the module."""
        module: Any = self._module()
        recording = current.get(None)
        if recording is None or module._forward_hooks or module._forward_pre_hooks or module._backward_hooks:
            return module._call_impl(*args, **given)
        if self._direct is not None and not given:
            found = self._direct(recording, module, *args)
            if found is not NotImplemented:
                return found if torch.is_grad_enabled() else without_gradient(found)
        if self._is_cell and recording.origins is None and recording.cells.automatic:
            found = _as_cell(recording, module, args, given)
            if found is not NotImplemented:
                return found
        if self._has_parameters:
            return recording.under(module._call_impl, args, given)
        return module._call_impl(*args, **given)


def _as_cell(recording: Recording, module: Any, args: Any, given: dict[str, Any]) -> Any:
    """Record a call as one node; NotImplemented where that is not possible."""
    operands: list[Any] = []
    form = operands_of(recording, (*args, *given.values()) if given else args, operands, False)
    if form is None or not operands:
        return NotImplemented
    cell = recording.cells.of(type(module).forward, module, (form, tuple(given)))
    if cell.failures > 1:
        return NotImplemented
    try:
        found = record(recording, cell, operands, {})
    except Exception:  # that of the module's code, if it is one, comes again; what a first call sets up does not
        cell.failures += 1
        return NotImplemented
    if cell.traces > _TRACES and cell.calls < _TRACES * cell.traces and not recording.is_kept:
        cell.failures = 2
    return found


def follow(module: nn.Module) -> None:
    """Have calls of all parts of a module be recorded as said in `Submodule`."""
    for part in module.modules():
        is_simple = not (part._parameters or part._modules or is_users(type(part)))
        if not is_simple and part is not module and part._compiled_call_impl is None:
            part._compiled_call_impl = Submodule(part)
