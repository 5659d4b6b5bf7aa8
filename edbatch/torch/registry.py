"""The table of PyTorch's functions for lazy tensors, which the files in `functions` fill."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch

from edbatch.errors import EdBatchError, MissingAttributeError

Function = TypeVar("Function", bound=Callable[..., Any])

#: By function of PyTorch, ours, of the same signature.
HANDLERS: dict[Any, Callable[..., Any]] = {}
#: The same by name of a method of lazy tensors.
METHODS: dict[str, Callable[..., Any]] = {}
#: Names of the methods that exist with an underscore behind, too, and change what they are called of.
IN_PLACE: set[str] = set()
#: Ours whose results share memory with their first operand in PyTorch, so that writing to one would change the other.
VIEWS: set[Callable[..., Any]] = set()

_INSTEAD = "compute it outside of the module, or write it with functions that are (docs/torch.md)"


def register(
    *functions: Any, methods: str = "", in_place: bool = False, view: bool = False
) -> Callable[[Function], Function]:
    """Have a function of ours be called for functions of PyTorch, and as methods.

    Args:
        functions: of PyTorch.
        methods: their names, with spaces between.
        in_place: whether the methods are there as `add_` besides `add`, too.
        view: see `VIEWS`.
    """

    def add(handler: Function) -> Function:
        HANDLERS.update(dict.fromkeys(functions, handler))
        for name in methods.split():
            METHODS[name] = handler
            if (theirs := getattr(torch.Tensor, name, None)) is not None:
                HANDLERS[theirs if callable(theirs) else theirs.__get__] = handler
            if in_place:
                IN_PLACE.add(name)
        if view:
            VIEWS.add(handler)
        return handler

    return add


def name_of(function: Any) -> str:
    """The name of a function of PyTorch."""
    return str(torch.overrides.resolve_name(function) or getattr(function, "__name__", function))


def refused(what: str, instead: str = _INSTEAD) -> EdBatchError:
    """The error about something that lazy tensors cannot be given to.

    Args:
        what: its name, perhaps with arguments.
        instead: what to do.
    """
    # No `TypeError`, which PyTorch's operators take for NotImplemented, so that Python tries others.
    return EdBatchError(f"edbatch.torch: {what} of a lazy tensor is not supported; {instead}")


def refused_attribute(name: str, instead: str = _INSTEAD) -> MissingAttributeError:
    """The error about an attribute that lazy tensors have not."""
    return MissingAttributeError(f"edbatch.torch: torch.Tensor.{name} of a lazy tensor is not supported; {instead}")


def expect_default(name: str, given: Any, *defaults: Any) -> None:
    """Refuse an argument of a function that is something else than a value that is known here.

    Raises:
        EdBatchError: it is.
    """
    if given is not None and not any(
        given is x or (not isinstance(given, torch.Tensor) and given == x) for x in defaults
    ):
        raise refused(f"{name}={given!r}")
