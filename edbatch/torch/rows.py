"""Lazy tensors whose rows are at hand: sentences, say, of which each sample has another number of words.

What a function computes row by row is computed of the rows, so that those of all samples run together, however many
each has. The tensor itself is computed only where something else reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

import edbatch as eb
from edbatch.torch.functions import index, layers, losses, matrices, shape
from edbatch.torch.functions.index import integers
from edbatch.torch.lazy import OPERATORS, LazyTensor
from edbatch.torch.recording import Recording, lift, recording, rows_of, stacked, without_gradient
from edbatch.torch.registry import HANDLERS, METHODS, VIEWS

#: Functions that are of each entry, or of the last axes.
_ENTRY_BY_ENTRY = (
    torch.tanh, torch.sigmoid, torch.exp, torch.log, torch.sqrt, torch.abs, torch.square, torch.sin, torch.cos,
    torch.neg, torch.relu, F.relu, F.silu, F.elu, F.leaky_relu, F.gelu, F.softplus, F.dropout, torch.clamp,
    torch.add, torch.sub, torch.mul, torch.div, torch.pow,
)  # fmt: skip


class LazyRows:
    """A lazy tensor [n, ...] that is known by its rows, or [1, n, ...].

    Args:
        parts: the rows, a list of expressions or an array of them; None after it was written to.
        in_front: whether there is an axis of one in front.
    """

    __slots__ = ("_whole", "in_front", "is_viewed", "parts")

    is_lazy = True

    def __init__(self, parts: Any, in_front: bool = False) -> None:
        self.parts, self.in_front = parts, in_front
        self.is_viewed = False
        self._whole: Any = None

    @property
    def unread(self) -> Any:
        """The tensor."""
        if self._whole is None:
            self._whole = eb.stack(self.parts)
            if self.in_front:
                self._whole = eb.unsqueeze(self._whole, 0)
            if self.is_viewed:
                recording().note_views(self._whole, ())
        return self._whole

    @property
    def rows(self) -> Any:
        """The rows as an array of expressions."""
        if isinstance(self.parts, list):
            self.parts = eb.array(self.parts)
        return self.parts

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Dispatch a function of PyTorch that is given some."""
        handler = HANDLERS.get(func)
        found = _tried(handler, _OF_ROWS.get(handler), args, kwargs or {})
        if found is not NotImplemented:
            return found
        return LazyTensor.__torch_function__(func, (), tuple(wholes_of(list(args))), wholes_of(kwargs))

    @property
    def shape(self) -> torch.Size:
        """As a tensor's."""
        if self.parts is None:
            return self._whole.shape
        return torch.Size((*([1] if self.in_front else []), len(self.parts), *self._part.spec.shape))

    @property
    def _part(self) -> Any:
        """What has the shape of a row."""
        return self.parts[0] if isinstance(self.parts, list) else self.parts

    def size(self, dim: int | None = None) -> Any:
        """As a tensor's."""
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        """As a tensor's."""
        return len(self.shape)

    @property
    def dtype(self) -> Any:
        """As a tensor's."""
        return (self._whole if self.parts is None else self._part).dtype

    def __getattr__(self, name: str) -> Any:
        whole = self.unread
        if name.endswith("_"):  # which is written to
            self.parts = None
        return getattr(whole, name)

    def __getitem__(self, key: Any) -> Any:
        found = _tried(index.getitem, _part, (self, key), {})
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


def _tried(handler: Any, of_rows: Any, args: Any, given: dict[str, Any]) -> Any:
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


def _of_each(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function for rows, where nothing else goes from row to row."""

    def of_rows(*args: Any, **given: Any) -> Any:
        arrays = [rows for x in args if (rows := rows_of(x)) is not None]
        if not arrays or any(len(one) != len(arrays[0]) for one in arrays):
            return NotImplemented
        axes = max(len(one.spec.shape) for one in arrays)
        entries = []
        for x in (*args, *given.values()):
            rows = rows_of(x)
            if rows is None and len(getattr(x, "shape", ())) > axes:
                return NotImplemented
            entries.append(lift(x) if rows is None else rows)
        return stacked(function(*entries[: len(args)], **dict(zip(given, entries[len(args) :], strict=True))))

    return of_rows


def _linear(input: Any, weight: Any, bias: Any = None) -> Any:
    rows = rows_of(input)
    if rows is None or len(rows.spec.shape) > 2:
        return NotImplemented
    return stacked(matrices.linear(rows, weight, bias))


def _matmul(input: Any, other: Any) -> Any:
    rows = rows_of(input)
    if rows is None or rows_of(other) is not None or len(rows.spec.shape) != 1 or len(other.shape) != 2:
        return NotImplemented
    return stacked(eb.matmul(rows, lift(other)))


def _layer_norm(input: Any, normalized_shape: Any, *args: Any, **given: Any) -> Any:
    rows = rows_of(input)
    if rows is None or len(normalized_shape) > len(rows.spec.shape):
        return NotImplemented
    return stacked(layers.layer_norm(rows, normalized_shape, *args, **given))


def _axis(x: LazyRows, dim: int, more: int = 0) -> int:
    """An axis counted from the front."""
    axes = len(x.shape) + more
    if not -axes <= dim < axes:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-axes}, {axes - 1}], but got {dim})")
    return dim % axes


def _along(handler: Callable[..., Any], more: int = 0) -> Callable[..., Any]:
    """A function of an axis, if that is not the first; `more` axes are there behind it."""

    def of_rows(input: Any, dim: Any = None, *args: Any, **given: Any) -> Any:
        rows = rows_of(input)
        if rows is None or not isinstance(dim, int) or _axis(input, dim, more) == 0:
            return NotImplemented
        return stacked(handler(rows, _axis(input, dim, more) - 1, *args, **given))

    return of_rows


_unsqueezed = _along(HANDLERS[torch.unsqueeze], 1)
_squeezed = _along(HANDLERS[torch.squeeze])


def _unsqueeze(input: Any, dim: int) -> Any:
    if dim in (0, -len(input.shape) - 1) and rows_of(input) is not None:
        return LazyRows(input.parts, True)
    return _unsqueezed(input, dim)


def _squeeze(input: Any, dim: Any = None) -> Any:
    if not isinstance(dim, int) or input.shape[dim] != 1:
        return NotImplemented
    if input.in_front and input.parts is not None:
        return LazyRows(input.parts) if dim in (0, -len(input.shape)) else NotImplemented
    return _squeezed(input, dim)


def _cat(tensors: Any, dim: int = 0, **given: Any) -> Any:
    found = [rows_of(x) for x in tensors]
    if given or any(rows is None for rows in found):
        return NotImplemented
    axis = _axis(tensors[0], dim)
    if axis == 0:
        return stacked(eb.array(found)) if len({rows.spec for rows in found}) == 1 else NotImplemented
    return stacked(eb.concatenate(found, axis - 1)) if len(set(map(len, found))) == 1 else NotImplemented


def _over(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the first axis, which is one of a list."""

    def of_rows(input: Any, dim: Any = None, keepdim: bool = False, **given: Any) -> Any:
        rows = rows_of(input)
        if rows is None or dim not in (0, -len(input.shape)) or keepdim or any(x is not None for x in given.values()):
            return NotImplemented
        return function(rows)

    return of_rows


def _unbind(input: Any, dim: int = 0) -> Any:
    if input.in_front and input.parts is not None and dim == 0:
        return (LazyRows(input.parts),)
    return tuple(input.parts) if rows_of(input) is not None and dim == 0 else NotImplemented


def _part(input: Any, key: Any) -> Any:
    if input.in_front and input.parts is not None and key.__class__ is int and key in (0, -1):
        return LazyRows(input.parts)
    rows = rows_of(input)
    if rows is None or key.__class__ not in (int, slice, type(None)):
        return NotImplemented
    if key is None:
        return LazyRows(input.parts, True)
    if isinstance(key, slice):
        return stacked(rows[key]) if range(*key.indices(len(rows))) else NotImplemented
    if not -len(rows) <= key < len(rows):
        raise IndexError(f"index {key} is out of bounds for dimension 0 with size {len(rows)}")
    return rows[key]


def _flip(input: Any, *dims: Any) -> Any:
    rows = rows_of(input)
    return NotImplemented if rows is None or shape.listed(dims) not in ((0,), [0]) else stacked(rows[::-1])


def _entropy(input: Any, target: Any, *args: Any, reduction: str = "mean", **given: Any) -> Any:
    """Of one label for each row."""
    rows = rows_of(input)
    plain = not args and given.get("weight") is None and not given.get("label_smoothing")
    if rows is None or not plain or len(rows.spec.shape) != 1 or not isinstance(target, torch.Tensor):
        return NotImplemented
    labels = integers(target) if not target.is_floating_point() else np.empty(0)
    is_usual = all(given.get(name) is None for name in ("size_average", "reduce"))
    is_usual = is_usual and not (labels == given.get("ignore_index", -100)).any()
    if not is_usual or labels.shape != (len(rows),) or labels.min() < 0 or labels.max() >= rows.spec.size:
        return NotImplemented
    found: Any = eb.cross_entropy(rows, labels)
    if reduction == "none":
        return eb.stack(found)
    return eb.sum(found) if reduction == "sum" else eb.mean(found)


_OF_ROWS: dict[Any, Callable[..., Any]] = {HANDLERS[one]: _of_each(HANDLERS[one]) for one in _ENTRY_BY_ENTRY}
_OF_ROWS |= {
    HANDLERS[torch.softmax]: _along(HANDLERS[torch.softmax]),
    HANDLERS[torch.log_softmax]: _along(HANDLERS[torch.log_softmax]),
    HANDLERS[torch.unsqueeze]: _unsqueeze,
    HANDLERS[torch.squeeze]: _squeeze,
    HANDLERS[torch.sum]: _over(eb.sum),
    HANDLERS[torch.mean]: _over(eb.mean),
    layers.layer_norm: _layer_norm,
    HANDLERS[F.linear]: _linear,
    matrices.matmul: _matmul,
    shape.cat: _cat,
    shape.flip: _flip,
    index.unbind: _unbind,
    losses.cross_entropy: _entropy,
}
_OF_ROWS |= {HANDLERS[one]: HANDLERS[one] for one in (torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu)}


def _method(name: str, handler: Any, of_rows: Any, theirs: Callable[..., Any]) -> None:
    def method(self: Any, *args: Any, **given: Any) -> Any:
        found = _tried(handler, of_rows, (self, *args), given)
        return theirs(self.unread, *wholes_of(args), **wholes_of(given)) if found is NotImplemented else found

    setattr(LazyRows, name, method)


def _written(name: str) -> None:
    def method(self: Any, other: Any) -> Any:
        whole, self.parts = self.unread, None
        return getattr(whole, name)(wholes_of(other))

    setattr(LazyRows, name, method)


def _fill() -> None:
    """Give the class all methods and operators."""
    for name, handler in METHODS.items():
        if handler in _OF_ROWS:
            _method(name, handler, _OF_ROWS[handler], getattr(LazyTensor, name))
    by_rows = {name: _of_each(function) for name, function in OPERATORS.items()} | {"matmul": _matmul}
    for name, of_rows in by_rows.items():
        _method(f"__{name}__", None, of_rows, getattr(LazyTensor, f"__{name}__"))
        reflected = partial(_reflected, of_rows)
        _method(f"__r{name}__", None, reflected, getattr(LazyTensor, f"__r{name}__"))
    for name in OPERATORS:
        _written(f"__i{name}__")
    _method("__neg__", None, _of_each(eb.neg), LazyTensor.__neg__)
    for name in ("abs", "eq", "ne", "gt", "ge", "lt", "le", "bool", "float", "contains", "copy", "deepcopy", "setitem"):
        _method(f"__{name}__", None, None, getattr(LazyTensor, f"__{name}__"))
    for name in ("device", "layout", "is_cpu", "is_cuda", "is_sparse", "is_quantized", "is_nested", "is_mkldnn"):
        setattr(LazyRows, name, getattr(LazyTensor, name))
    LazyRows.__hash__ = object.__hash__  # type: ignore[method-assign]


def _reflected(of_rows: Any, self: Any, other: Any) -> Any:
    return of_rows(other, self)


_fill()
Recording.rows = LazyRows
