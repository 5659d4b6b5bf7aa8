"""What happens where a module calls one of its parts while `Batched` records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Lock
from typing import Any

import torch
from torch import nn

import edbatch as eb
from edbatch.base.context_stack import contextmanager
from edbatch.errors import EdBatchError
from edbatch.torch.cells import noted, record
from edbatch.torch.operands import operands_of
from edbatch.torch.recording import Recording, current, without_gradient
from edbatch.torch.registry import refused
from edbatch.torch.state import is_users

#: A cell that comes by itself is given up where it is traced for more shapes than these, and hardly called.
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
    if recording.origins is not None or index.__class__ is not torch.Tensor:
        return NotImplemented
    table = recording.parameters.get(id(module._parameters["weight"]))
    is_plain = module.padding_idx is None and module.max_norm is None and not module.scale_grad_by_freq
    with torch._C.DisableTorchFunction():  # each question to it would go through the mode
        if table is None or not is_plain or index.ndim or index.dtype not in (torch.int64, torch.int32):
            return NotImplemented
        number = index.item()
    return eb.lookup(table, number) if number >= 0 else NotImplemented


#: By class, what is recorded at once; NotImplemented: PyTorch's code is run.
_DIRECT: dict[type, Callable[..., Any]] = {nn.Linear: _linear, nn.Embedding: _embedding}


def caller(module: nn.Module) -> Callable[..., Any]:
    """What PyTorch calls instead of a module's `forward` and hooks where `Batched` records in this thread.

    A call is a cell if only tensors are given to it, or is recorded at once, of layers that are one node.
    """
    is_cell = _may_be_cell(module)
    direct, call_impl, is_grad_enabled = _DIRECT.get(type(module)), module._call_impl, torch.is_grad_enabled

    def call(*args: Any, **given: Any) -> Any:
        recording: Any = current.get()
        if direct is not None and not given and _is_plain(module):
            found = direct(recording, module, *args)
            if found is not NotImplemented:
                return found if is_grad_enabled() else without_gradient(found)
        elif is_cell and recording.origins is None and recording.cells.automatic and _is_plain(module):
            known = recording.cells.usual.get(module)
            if (
                known is not None
                and not given
                and len(args) == known.count
                and is_grad_enabled()
                and known.is_as_it_was()
            ):
                lazy = recording.lazy
                for x in args:
                    if x.__class__ is not lazy:
                        break
                else:
                    try:
                        found = known.call(*args)
                    except Exception:  # of arguments of other shapes, perhaps
                        del recording.cells.usual[module]
                    else:
                        known.calls += 1
                        return found if not known.shares else noted(recording, found, args)
            found = _as_cell(recording, module, args, given)
            if found is not NotImplemented:
                return found
        return call_impl(*args, **given)

    return call


def _is_plain(module: Any) -> bool:
    """Whether a call is one of the class's `forward`, and nothing else."""
    own = module.__dict__
    return not (own["_forward_hooks"] or own["_forward_pre_hooks"] or "forward" in own)


def _as_cell(recording: Recording, module: Any, args: Any, given: dict[str, Any]) -> Any:
    """Record a call as one node; NotImplemented where that is not possible."""
    operands: list[Any] = []
    form = operands_of(recording, (*args, *given.values()) if given else args, operands, False)
    if form is None or not operands:
        return NotImplemented
    cell = recording.cells.of(type(module).forward, module, (form, tuple(given)), False)
    if cell.failures > 1 or not cell.is_as_it_was():
        return NotImplemented
    try:
        found = record(recording, cell, operands, {})
    except Exception:  # that of the module's code, if it is one, comes again; what a first call sets up does not
        cell.failures += 1
        return NotImplemented
    if cell.traces > _TRACES and cell.calls < _TRACES * cell.traces and not recording.is_kept:
        cell.failures = 2
    elif not given and not cell.shares and cell.count == len(args) and torch.is_grad_enabled():
        recording.cells.usual[module] = cell
    return found


def _may_be_cell(part: nn.Module) -> bool:
    """Whether a module is more than one of PyTorch's layers that are a node or two."""
    return bool(part._modules) or is_users(type(part)) or isinstance(part, nn.RNNCellBase)


def note_callers(module: nn.Module, callers: dict[nn.Module, Callable[..., Any]]) -> None:
    """Note what is called instead of parts of a module, for those that are new.

    Raises:
        EdBatchError: one has hooks of the backward pass, which is not run module by module, or computes its weights in
            hooks.
    """
    for part in module.modules():
        for hook in part._forward_pre_hooks.values():
            if type(hook).__module__ in ("torch.nn.utils.weight_norm", "torch.nn.utils.spectral_norm"):
                old = type(hook).__module__
                raise EdBatchError(
                    f"edbatch.torch.Batched: {old} of a {type(part).__name__} is not supported; expected its "
                    f"successor, torch.nn.utils.parametrizations.{old.rpartition('.')[2]}"
                )
        if part._backward_hooks or part._backward_pre_hooks:
            raise EdBatchError(
                f"edbatch.torch.Batched: a {type(part).__name__} has backward hooks, which are not supported; hooks of "
                "parameters and of what is returned are"
            )
        if part is not module and part not in callers and (_may_be_cell(part) or type(part) in _DIRECT):
            callers[part] = caller(part)


# What PyTorch asks while a thread records: which calls of modules are ours, and whether lazy tensors pass by a tape.
# It asks in Python; other threads are answered as ever, and the answers are put back where no thread records.

_lock = Lock()
_recording = [0]  # how many threads do
_unwrapped = torch._functorch.utils.unwrap_dead_wrappers


class _Dispatch:
    """`nn.Module._compiled_call_impl`: what is called instead of a module; None: nothing."""

    def __get__(self, module: Any, kind: Any = None) -> Any:
        recording = current.get(None)
        return None if recording is None or module is None else recording.callers.get(module)


def _checked(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """What `torch.autograd.Function.apply` is given: lazy tensors would pass by its gradient."""
    if any(hasattr(x, "is_lazy") for x in args):
        raise refused("a torch.autograd.Function", "write it with functions of PyTorch, or x + (f(x) - x).detach()")
    return _unwrapped(args)


@contextmanager
def installed() -> Iterator[None]:
    """Have PyTorch ask."""
    with _lock:
        _recording[0] += 1
        nn.Module._compiled_call_impl = _Dispatch()
        torch._functorch.utils.unwrap_dead_wrappers = _checked
    try:
        yield
    finally:
        with _lock:
            _recording[0] -= 1
            if not _recording[0]:
                nn.Module._compiled_call_impl = None
                torch._functorch.utils.unwrap_dead_wrappers = _unwrapped
