"""Lazy tensors: expressions of EdBatch with the functions, methods and operators of PyTorch's tensors."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any, ClassVar

import numpy as np
import torch

import edbatch as eb
from edbatch.errors import MissingAttributeError
from edbatch.torch.functions import elementwise, index, matrices
from edbatch.torch.recording import Recording, called, lift, without_gradient, written
from edbatch.torch.registry import HANDLERS, METHODS, VIEWS, name_of, refused
from edbatch.torch.unread import Unread, values_of, values_of_sample


class Refused:
    """An attribute of tensors that lazy ones have not."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        if owner is None:
            return self
        raise refused(f"torch.Tensor.{self._name}", error=MissingAttributeError)


class LazyTensor(eb.Expression):
    """A value of one sample, in a module that `Batched` calls: computed when a mini-batch runs, or where it is read.

    It has the functions and methods of PyTorch's tensors that are registered; all others are refused.
    """

    __slots__ = ()

    is_lazy: ClassVar[bool] = True

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Dispatch a function of PyTorch that is given a lazy tensor."""
        if Recording.rows in types:
            return Recording.rows.__torch_function__(func, types, args, kwargs)
        handler = HANDLERS.get(func)
        if handler is None:
            raise refused(name_of(func))
        return called(func, handler, args, kwargs)

    @property
    def shape(self) -> Any:
        """As a tensor's."""
        return torch.Size(self.spec.shape)

    @property
    def dtype(self) -> Any:
        """As a tensor's."""
        return torch.float32 if self.spec.dtype == np.float32 else torch.float64

    device = property(lambda self: torch.device("cpu"))
    layout = property(lambda self: torch.strided)
    is_cpu = property(lambda self: True)
    is_cuda = is_sparse = is_quantized = is_nested = is_mkldnn = property(lambda self: False)

    def size(self, dim: int | None = None) -> Any:  # type: ignore[override]
        """As a tensor's."""
        return torch.Size(self.spec.shape) if dim is None else self.spec.shape[dim]

    def dim(self) -> int:
        """As a tensor's."""
        return len(self.spec.shape)

    def numel(self) -> int:
        """As a tensor's."""
        return self.spec.size

    ndimension, nelement = dim, numel

    def __len__(self) -> int:
        if not self.spec.shape:
            raise TypeError("len() of a 0-d tensor; torch.stack puts lazy tensors together, torch.tensor does not")
        return self.spec.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.spec.shape:
            raise TypeError("iteration over a 0-d tensor")
        return iter(called(torch.Tensor.unbind, index.unbind, (self,), None))

    def __await__(self) -> Generator[Any, Any, torch.Tensor]:
        return values_of_sample(self)

    def __contains__(self, other: Any) -> bool:
        return bool((self == other).any())

    def __float__(self) -> float:
        return self.item()

    def __bool__(self) -> bool:
        if self.spec.size != 1:
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
        return self.item() != 0

    def __setitem__(self, key: Any, value: Any) -> None:
        raise refused("x[...] = y, torch.Tensor.__setitem__")

    def __getitem__(self, key: Any) -> Any:
        return called(torch.Tensor.__getitem__, index.getitem, (self, key), None)

    def __copy__(self) -> Any:
        return LazyTensor(self.graph, self.id, self.spec)

    def __deepcopy__(self, memo: Any) -> Any:
        raise refused("copy.deepcopy", "x.clone() is another with the same value")

    def __repr__(self) -> str:
        return f"LazyTensor(shape={list(self.spec.shape)}, dtype={self.dtype})"

    __hash__ = object.__hash__


def _method(function: Callable[..., Any], theirs: Any) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        for x in args:
            if x.__class__ is Recording.rows:
                return Recording.rows.__torch_function__(theirs, (), (self, *args), kwargs)
        return called(theirs, function, (self, *args), kwargs)

    return method


def _attribute(function: Callable[..., Any], theirs: Any) -> property:
    return property(lambda self: called(theirs, function, (self,), None))


def _changing(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A method that writes to what it is called of: other names of the same tensor see it, too."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return written(self, function(self, *map(values_of, args), **kwargs), name)

    return method


def _operator(function: Callable[..., Any], reflected: bool) -> Callable[..., Any]:
    def operator(self: Any, other: Any) -> Any:
        kind = other.__class__
        if kind is not LazyTensor and kind is not float:
            if not isinstance(other, torch.Tensor | Unread | int | float | np.ndarray | np.generic):
                return NotImplemented  # of rows, which have operators of their own
            other = lift(other)
        result = function(other, self) if reflected else function(self, other)
        return result if torch.is_grad_enabled() else without_gradient(result)

    return operator


def _compared(function: Callable[..., Any], if_none: Any) -> Callable[..., Any]:
    def comparison(self: Any, other: Any) -> Any:
        return if_none if other is None else function(self, other)

    return comparison


#: What expressions of EdBatch have, too, and mean the same by.
_SAME = ("numpy", "tolist", "item", "ndim")


#: Entry by entry.
OPERATORS = {"add": eb.add, "sub": eb.subtract, "mul": eb.multiply, "truediv": eb.divide, "pow": eb.power}


def _fill() -> None:
    """Give the class all methods and operators, and have it refuse the other attributes of tensors."""
    for name, function in METHODS.items():
        theirs = getattr(torch.Tensor, name, name)
        is_attribute = not callable(theirs)
        setattr(LazyTensor, name, (_attribute if is_attribute else _method)(function, theirs))
        if (in_place := getattr(torch.Tensor, f"{name}_", None)) is not None and function not in VIEWS:
            HANDLERS[in_place] = _changing(getattr(LazyTensor, name), f"torch.Tensor.{name}_")
            setattr(LazyTensor, f"{name}_", HANDLERS[in_place])
    for name, function in (OPERATORS | {"matmul": matrices.matmul}).items():
        setattr(LazyTensor, f"__{name}__", _operator(function, False))
        setattr(LazyTensor, f"__r{name}__", _operator(function, True))
    for name, function in OPERATORS.items():
        setattr(LazyTensor, f"__i{name}__", _changing(_operator(function, False), f"torch.Tensor.__i{name}__"))
    for name, function in elementwise.COMPARISONS.items():
        setattr(LazyTensor, f"__{name}__", _compared(function, name == "ne") if name in ("eq", "ne") else function)
    LazyTensor.__neg__, LazyTensor.__abs__ = METHODS["neg"], METHODS["abs"]  # type: ignore[method-assign]
    own = vars(LazyTensor)
    for name in dir(torch.Tensor):
        if name not in own and not name.startswith("__") and name not in _SAME:
            setattr(LazyTensor, name, Refused(name))


_fill()
Recording.lazy = LazyTensor
