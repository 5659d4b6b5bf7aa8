"""What PyTorch asks while a thread records: which calls of modules are ours, and whether lazy tensors pass by a tape.

Both are questions that PyTorch asks in Python; they are answered as ever in other threads, and put back where no thread
records.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock
from typing import Any

import torch
from torch import nn

from edbatch.base.blocks import contextmanager
from edbatch.torch.recording import current
from edbatch.torch.registry import refused

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
