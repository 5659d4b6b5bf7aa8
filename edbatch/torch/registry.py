"""The table of PyTorch's functions for lazy tensors, which the files in `functions` fill."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch

from edbatch.errors import EdBatchError

Function = TypeVar("Function", bound=Callable[..., Any])

#: By function of PyTorch, ours, of the same signature.
HANDLERS: dict[Any, Callable[..., Any]] = {}
#: The same by name of a method of lazy tensors.
METHODS: dict[str, Callable[..., Any]] = {}
#: Ours whose results share memory with their first operand in PyTorch, so that writing to one would change the other.
VIEWS: set[Callable[..., Any]] = set()

_ELSE = "compute it outside of the module, or write it with functions that are (docs/torch.md)"

#: What to do where a tensor is written to.
WRITTEN = "write x = f(x), which makes another"
_PUT = "put what is computed in a list, and torch.stack or torch.cat that; or x = x.index_put(...), torch.where"
_READ = "torch.from_numpy(x.numpy()) reads its values, for what has no gradient"
_RETURNED = "gradients and hooks are those of what the module returns, or of its parameters"

#: What to do instead of functions and methods, by the last part of their names.
_INSTEAD = {
    "backward": "return it: gradients are computed of what the module returns",
    **dict.fromkeys(("__setitem__", "copy_"), _PUT),
    **dict.fromkeys(("multinomial", "bernoulli", "long", "int", "nonzero", "unique"), _READ),
    **dict.fromkeys(("requires_grad", "grad", "grad_fn", "is_leaf", "register_hook", "retain_grad"), _RETURNED),
    **dict.fromkeys(("half", "bfloat16"), "one dtype is computed with, that of the parameters; convert the module"),
    "cuda": "modules run on the CPU here",
}


def register(*functions: Any, methods: str = "", view: bool = False) -> Callable[[Function], Function]:
    """Have a function of ours be called for functions of PyTorch, and as methods, with these names."""

    def add(handler: Function) -> Function:
        HANDLERS.update(dict.fromkeys(functions, handler))
        for name in methods.split():
            METHODS[name] = handler
            if (theirs := getattr(torch.Tensor, name, None)) is not None:
                HANDLERS[theirs if callable(theirs) else theirs.__get__] = handler
        if view:
            VIEWS.add(handler)
        return handler

    return add


def name_of(function: Any) -> str:
    """The name of a function of PyTorch."""
    return str(torch.overrides.resolve_name(function) or getattr(function, "__name__", function))


def another_of(name: str) -> str:
    """What to do instead of a function that writes to a tensor."""
    method = name.rpartition(".")[2].removesuffix("_")
    return f"write x = x.{method}(...), which makes another" if name[-1] == "_" and method in METHODS else WRITTEN


def refused(what: str, instead: str | None = None, error: type[EdBatchError] = EdBatchError) -> EdBatchError:
    """The error about something that lazy tensors cannot be given to, or have not.

    Args:
        what: its name, perhaps with arguments.
        instead: what to do; None: what is known of the name.
        error: its class; PyTorch takes a `TypeError` for NotImplemented, so that Python tries other operators.
    """
    name = what.rpartition(".")[2]
    is_writing = name[-1:] == "_" and name[-2:] != "__"
    instead = instead or _INSTEAD.get(name) or (another_of(name) if is_writing else _ELSE)
    return error(f"edbatch.torch: {what} of a lazy tensor is not supported; {instead}")


class Unlike(Exception):
    """Arguments that ours does not take: PyTorch's own function is called, see `functions.theirs`."""


def expect_default(given: Any, *defaults: Any) -> None:
    """Leave to PyTorch's function an argument that is something else than a value that is known here."""
    if given is not None and (hasattr(given, "shape") or given not in defaults):
        raise Unlike
