"""Lazy tensors whose rows are at hand: sentences, say, of which each sample has another number of words.

What a function computes row by row is computed of the rows, so that those of all samples run together, however many
each has. The tensor itself is computed only where something else reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

import edbatch as eb
from edbatch.torch.lazy import LazyTensor
from edbatch.torch.recording import Recording, recording, without_gradient
from edbatch.torch.registry import HANDLERS, VIEWS

#: By function of ours, the one for rows, of the same arguments, or NotImplemented; see `functions.by_rows`.
OF_ROWS: dict[Any, Callable[..., Any]] = {}


class LazyRows:
    """A lazy tensor [n, ...] that is known by its rows, or [1, n, ...].

    Args:
        parts: the rows, a list of expressions or an array of them.
        in_front: whether there is an axis of one in front.
    """

    __slots__ = ("_id", "_parts", "_whole", "in_front", "is_viewed")

    is_lazy = True

    def __init__(self, parts: Any, in_front: bool = False) -> None:
        self._parts, self.in_front = parts, in_front
        self.is_viewed = False
        self._whole: Any = None
        self._id = -1

    @property
    def unread(self) -> Any:
        """The tensor."""
        if self._whole is None:
            whole = eb.stack(self._parts)
            self._whole = eb.unsqueeze(whole, 0) if self.in_front else whole
            self._id = self._whole.id
            if self.is_viewed:
                recording().note_views(self._whole, ())
        return self._whole

    @property
    def parts(self) -> Any:
        """The rows; None if it was written to."""
        return self._parts if self._whole is None or self._whole.id == self._id else None

    @property
    def rows(self) -> Any:
        """The rows as an array of expressions."""
        if isinstance(self._parts, list):
            self._parts = eb.array(self._parts)
        return self._parts

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Dispatch a function of PyTorch that is given some."""
        handler = HANDLERS.get(func)
        found = tried(handler, OF_ROWS.get(handler), args, kwargs or {})
        if found is not NotImplemented:
            return found
        return LazyTensor.__torch_function__(func, (), tuple(wholes_of(list(args))), wholes_of(kwargs))

    @property
    def shape(self) -> torch.Size:
        """As a tensor's."""
        return torch.Size((*([1] if self.in_front else []), len(self._parts), *self._row.spec.shape))

    @property
    def _row(self) -> Any:
        """What has the shape and dtype of a row."""
        return self._parts[0] if isinstance(self._parts, list) else self._parts

    def size(self, dim: int | None = None) -> Any:
        """As a tensor's."""
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        """As a tensor's."""
        return len(self.shape)

    @property
    def dtype(self) -> Any:
        """As a tensor's."""
        return self._row.dtype

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unread, name)

    def __getitem__(self, key: Any) -> Any:
        handler = HANDLERS[torch.Tensor.__getitem__]
        found = tried(handler, OF_ROWS[handler], (self, key), {})
        return self.unread[wholes_of(key)] if found is NotImplemented else found

    def __iter__(self) -> Iterator[Any]:
        return iter(self.unbind())

    def __len__(self) -> int:
        return self.shape[0]


def wholes_of(given: Any) -> Any:
    """The same with tensors where there are some of rows, also in lists, tuples and dictionaries."""
    if isinstance(given, LazyRows):
        return given.unread
    if given.__class__ is list or given.__class__ is tuple:
        return given.__class__(map(wholes_of, given))
    return {key: wholes_of(x) for key, x in given.items()} if given.__class__ is dict else given


def tried(handler: Any, of_rows: Any, args: Any, given: dict[str, Any]) -> Any:
    """What a function for rows gives; NotImplemented: it has to be of the whole."""
    if of_rows is None or given.get("inplace"):
        return NotImplemented
    found = of_rows(*args, **given)
    if found is NotImplemented:
        return found
    if handler in VIEWS:
        for x in (args[0], found):
            if isinstance(x, LazyRows):
                x.is_viewed = True
                recording().note_views(x.rows, () if x._whole is None else [x._whole])
    return found if torch.is_grad_enabled() else without_gradient(found)


Recording.rows = LazyRows
