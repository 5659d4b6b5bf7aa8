"""Functions and methods of modules that are recorded as one node a call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import update_wrapper, wraps
from types import MethodType
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

import edbatch as eb
from edbatch.errors import EdBatchError, shown
from edbatch.torch.recording import current, lift, without_gradient
from edbatch.torch.unread import Unread


class _Cell:
    """A function that is a cell where `Batched` records, and itself elsewhere."""

    __wrapped__: Callable[..., Any]

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        return self if owner is None else MethodType(self, owner)

    def __call__(self, *args: Any, **static: Any) -> Any:
        function = self.__wrapped__
        recording = current.get(None)
        if recording is None:
            return function(*args, **static)
        enabled = torch.is_grad_enabled() or not recording.grad
        owner = args[0] if args and isinstance(args[0], torch.nn.Module) else None
        given = args if owner is None else args[1:]
        shape: Any = None
        key: Any = (self, id(owner), enabled)
        if any(x.__class__ is tuple or x.__class__ is list for x in given):  # (x, (h, c)), as LSTMs have it
            parts: list[Any] = []
            shape = _flattened(given, parts)
            given, key = tuple(parts), (*key, shape)
        made = recording.cells.get(key)
        if made is None:
            of = function if owner is None else MethodType(function, owner)
            made = recording.cells[key] = eb.cell(of if shape is None else _of_parts(of, shape))
        found = made(*[x if isinstance(x, eb.Expression) else _argument(self, x) for x in given], **static)
        leaves = found if found.__class__ is tuple else (found,)
        if not all(isinstance(x, eb.Expression) for x in leaves):
            leaves = tree_leaves(found)
        recording.note_views(*given, *leaves)  # it may have returned what it was given
        return found if enabled else without_gradient(found)


def _flattened(x: Any, parts: list[Any]) -> Any:
    """Add what is in tuples and lists to a list; what they are, as a key."""
    if x.__class__ is tuple or x.__class__ is list:
        return (x.__class__, *[_flattened(one, parts) for one in x])
    parts.append(x)
    return None


def _nested(shape: Any, parts: Iterator[Any]) -> Any:
    return next(parts) if shape is None else shape[0]([_nested(one, parts) for one in shape[1:]])


def _of_parts(function: Callable[..., Any], shape: Any) -> Callable[..., Any]:
    """The function of what is in its arguments."""

    @wraps(function)
    def of(*parts: Any, **static: Any) -> Any:
        return function(*_nested(shape, iter(parts)), **static)

    del of.__wrapped__  # whose signature is another
    return of


def _argument(cell: Any, x: Any) -> Any:
    if isinstance(x, torch.Tensor) and not x.is_floating_point() and not x.ndim and x.dtype is not torch.bool:
        return int(x)
    if isinstance(x, Unread) or (isinstance(x, torch.Tensor) and not x.is_floating_point()):
        raise EdBatchError(
            f"edbatch.torch.cell {cell.__qualname__}: expected tensors of floats, and integers; got {x.dtype}"
        )
    return lift(x)


def cell(function: Callable[..., Any]) -> Any:
    """Mark a function, or a method of a module, whose calls `Batched` records as one node each, which is faster.

    It is traced once per tuple of argument shapes, so what it computes must follow from its arguments, its module's
    parameters and attributes; see `edbatch.cell`. Its arguments are tensors, tuples and lists of some, and integers
    that are an index of `nn.Embedding` or a label of `F.cross_entropy`; what decides what it computes is given by
    keyword only (`def f(self, x, *, s)`). It returns tensors, or tuples, lists and dictionaries of some. Called
    otherwise it is as without the mark.

    Args:
        function: see above.

    Raises:
        EdBatchError: it is no function. When called: it reads a value, or an argument is something else.

    Example:
        >>> import torch, edbatch.torch
        >>> class Chain(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.layer = torch.nn.Linear(2, 2)
        ...     @edbatch.torch.cell
        ...     def step(self, h):
        ...         return torch.tanh(self.layer(h)) + h
        ...     def forward(self, steps):
        ...         h = torch.zeros(2)
        ...         for _ in range(steps):
        ...             h = self.step(h)
        ...         return h
        >>> batched = edbatch.torch.Batched(Chain())
        >>> _ = batched([1, 5])
        >>> batched.last.report().nodes
        6
    """
    if not callable(function) or isinstance(function, type | torch.nn.Module):
        raise EdBatchError(f"edbatch.torch.cell: expected a function or a method, got {shown(function)}")
    return _Cell(function)
