"""Functions of lazy tensors that are known by their rows, see `edbatch.torch.rows`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

import edbatch as eb
from edbatch.torch.functions import index, layers, losses, matrices, shape
from edbatch.torch.functions.index import integers
from edbatch.torch.lazy import OPERATORS, LazyTensor
from edbatch.torch.recording import lift, rows_of, stacked
from edbatch.torch.registry import HANDLERS, METHODS
from edbatch.torch.rows import OF_ROWS, LazyRows, tried, wholes_of

#: Functions that are of each entry, or of the last axes.
_ENTRY_BY_ENTRY = (
    torch.tanh, torch.sigmoid, torch.exp, torch.log, torch.sqrt, torch.abs, torch.square, torch.sin, torch.cos,
    torch.neg, torch.relu, F.relu, F.silu, F.elu, F.leaky_relu, F.gelu, F.softplus, F.dropout, torch.clamp,
    torch.add, torch.sub, torch.mul, torch.div, torch.pow,
)  # fmt: skip


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


def _along(handler: Callable[..., Any], more: int = 0) -> Callable[..., Any]:
    """A function of an axis, if that is not the first; `more` axes are there behind it."""

    def of_rows(input: Any, dim: Any = None, *args: Any, **given: Any) -> Any:
        rows = rows_of(input)
        axis = shape.axis_among(len(input.shape) + more, dim) if rows is not None and isinstance(dim, int) else 0
        return stacked(handler(rows, axis - 1, *args, **given)) if axis else NotImplemented

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
    axis = shape.axis_among(len(tensors[0].shape), dim)
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


OF_ROWS |= {HANDLERS[one]: _of_each(HANDLERS[one]) for one in _ENTRY_BY_ENTRY}
OF_ROWS |= {
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
    index.getitem: _part,
    losses.cross_entropy: _entropy,
}
OF_ROWS |= {HANDLERS[one]: HANDLERS[one] for one in (torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu)}


def _method(name: str, handler: Any, of_rows: Any, theirs: Callable[..., Any]) -> None:
    def method(self: Any, *args: Any, **given: Any) -> Any:
        found = tried(handler, of_rows, (self, *args), given)
        return theirs(self.unread, *wholes_of(args), **wholes_of(given)) if found is NotImplemented else found

    setattr(LazyRows, name, method)


def _fill() -> None:
    """Give the class all methods and operators."""
    for name, handler in METHODS.items():
        if handler in OF_ROWS:
            _method(name, handler, OF_ROWS[handler], getattr(LazyTensor, name))
    by_rows = {name: _of_each(function) for name, function in OPERATORS.items()} | {"matmul": _matmul}
    for name, of_rows in by_rows.items():
        _method(f"__{name}__", None, of_rows, getattr(LazyTensor, f"__{name}__"))
        reflected = partial(_reflected, of_rows)
        _method(f"__r{name}__", None, reflected, getattr(LazyTensor, f"__r{name}__"))
    for name in OPERATORS:
        _method(f"__i{name}__", None, None, getattr(LazyTensor, f"__i{name}__"))
    _method("__neg__", None, _of_each(eb.neg), LazyTensor.__neg__)
    for name in ("abs", "eq", "ne", "gt", "ge", "lt", "le", "bool", "float", "contains", "copy", "deepcopy", "setitem"):
        _method(f"__{name}__", None, None, getattr(LazyTensor, f"__{name}__"))
    for name in ("device", "layout", "is_cpu", "is_cuda", "is_sparse", "is_quantized", "is_nested", "is_mkldnn"):
        setattr(LazyRows, name, getattr(LazyTensor, name))
    LazyRows.__hash__ = object.__hash__  # type: ignore[method-assign]


def _reflected(of_rows: Any, self: Any, other: Any) -> Any:
    return of_rows(other, self)


_fill()
