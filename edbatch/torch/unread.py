"""Truth values and whole numbers that are computed of lazy tensors."""

from __future__ import annotations

import operator
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import edbatch as eb
from edbatch.errors import EdBatchError
from edbatch.torch.recording import Recording, recording, whole_of
from edbatch.torch.registry import HANDLERS


class Unread:
    """The result of a comparison, or of `argmax`: read where a module asks for its values, which runs what is pending.

    As an operand beside lazy tensors, and in `torch.where` and `masked_fill`, it is not read. For all else it is the
    tensor of its values.

    Args:
        unread: an expression of them, as numbers of the graph's dtype.
        dtype: torch.bool or torch.int64.
    """

    __slots__ = ("_tensor", "dtype", "unread")

    is_lazy = True

    def __init__(self, unread: Any, dtype: torch.dtype = torch.bool) -> None:
        self.unread = unread
        self.dtype = dtype
        self._tensor: torch.Tensor | None = None

    @property
    def tensor(self) -> torch.Tensor:
        """The values."""
        if self._tensor is None:
            self._tensor = torch.as_tensor(self.unread.value()).to(self.dtype)
        return self._tensor

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """PyTorch's function of the values; ours, where one of the operands is a lazy tensor."""
        for kind in types:
            if issubclass(kind, eb.Expression | Recording.rows):
                return kind.__torch_function__(func, types, args, kwargs)
        parts = args[0] if func in (torch.stack, torch.cat) and args else ()
        if parts and all(x.__class__ is cls and x.dtype is parts[0].dtype for x in parts):
            joined = HANDLERS[func]([x.unread for x in parts], *args[1:], **(kwargs or {}))
            return Unread(whole_of(joined), parts[0].dtype)
        return func(*values_of(list(args)), **values_of(kwargs or {}))

    @property
    def shape(self) -> torch.Size:
        """As a tensor's."""
        return torch.Size(self.unread.shape)

    def float(self) -> Any:
        """The values as a lazy tensor, 1 for what is true."""
        return HANDLERS[torch.Tensor.float](self.unread)

    def double(self) -> Any:
        """As `float`."""
        return HANDLERS[torch.Tensor.double](self.unread)

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Of another dtype: a lazy tensor, if that is the graph's."""
        if self.unread.dtype in (*args, *kwargs.values()):
            return self.unread
        return self.tensor.to(*args, **kwargs)

    def type_as(self, other: Any) -> Any:
        """See `to`."""
        return self.to(other.dtype)

    def __invert__(self) -> Any:
        return Unread(1 - self.unread) if self.dtype is torch.bool else ~self.tensor

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tensor, name)

    def __await__(self) -> Generator[Any, Any, torch.Tensor]:
        if self._tensor is None:
            self._tensor = (yield from values_of_sample(self.unread)).to(self.dtype)
        return self._tensor

    def item(self) -> Any:
        """The only entry as a number."""
        if self._tensor is not None or self.unread.spec.size != 1:
            return self.tensor.item()
        return bool(self.unread.item()) if self.dtype is torch.bool else int(self.unread.item())

    def __bool__(self) -> bool:
        return bool(self.item() if self.unread.spec.size == 1 else self.tensor)

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> Any:
        return float(self.item())

    __index__ = __int__
    __hash__ = object.__hash__


@dataclass(frozen=True)
class Kept:
    """What a sample that is kept returns besides lazy tensors, as numbers and texts that tell whether it is the same.

    Args:
        dtype: by name, of NumPy's; or of an `Unread`.
        shape: of a tensor; None of an `Unread`.
        held: bytes, or what is unread.
    """

    dtype: str
    shape: tuple[int, ...] | None
    held: Any

    @staticmethod
    def of(result: Any) -> Any:
        """A result, in this form if it is one of these.

        Raises:
            EdBatchError: it has numbers that change, as a parameter has.
        """
        if isinstance(result, Unread):
            return Kept(str(result.dtype).removeprefix("torch."), None, result.unread)
        if not isinstance(result, torch.Tensor):
            return whole_of(result)
        if result.requires_grad or isinstance(result, torch.nn.Parameter):
            raise EdBatchError(
                f"edbatch.torch.Batched(..., replay=True): forward returns a {type(result).__name__} of shape "
                f"{list(result.shape)} whose numbers change; return x.clone() of a parameter, x.detach() of a tensor "
                "of the sample, or leave out replay=True"
            )
        array = result.numpy()
        return Kept(array.dtype.str, array.shape, array.tobytes())

    def result(self) -> Any:
        """What it was."""
        if self.shape is None:
            return Unread(self.held, getattr(torch, self.dtype))
        return torch.from_numpy(np.frombuffer(self.held, self.dtype).reshape(self.shape).copy())


def values_of_sample(x: eb.Expression) -> Generator[Any, Any, torch.Tensor]:
    """The values of a lazy tensor, once all samples wait for some.

    Raises:
        EdBatchError: others would run in this one's block of `torch.no_grad()`.
    """
    if recording().grad and not torch.is_grad_enabled():
        raise EdBatchError(
            "edbatch.torch: await inside of torch.no_grad(), which would apply to other samples, too; "
            "await after the block"
        )
    return torch.as_tensor((yield from eb.Expression.__await__(x)))


def values_of(given: Any) -> Any:
    """The same with tensors of values where there are `Unread`, also in lists, tuples and dictionaries."""
    if isinstance(given, Unread):
        return given.tensor
    if isinstance(given, list | tuple) and type(given) in (list, tuple):
        return type(given)(map(values_of, given))
    if isinstance(given, dict):
        return {key: values_of(one) for key, one in given.items()}
    return given


def _set_operators() -> None:
    def of_values(name: str) -> Any:
        def method(self: Unread, *others: Any) -> Any:
            if others and isinstance(others[0], eb.Expression | Recording.rows):
                return NotImplemented
            return getattr(self.tensor, name)(*map(values_of, others))

        return method

    binary = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor"]
    names = [f"__{side}{name}__" for name in binary for side in ("", "r")]
    others = ["eq", "ne", "lt", "le", "gt", "ge", "neg", "abs", "len", "iter", "getitem"]
    for name in (*names, *(f"__{name}__" for name in others)):
        setattr(Unread, name, of_values(name))

    def joined(name: str, of_both: Any) -> None:
        read = getattr(Unread, name)

        def method(self: Unread, other: Any) -> Any:
            if isinstance(other, Unread) and self.dtype is other.dtype is torch.bool:
                return Unread(of_both(self.unread, other.unread))
            return read(self, other)

        setattr(Unread, name, method)

    joined("__and__", operator.mul)
    joined("__or__", eb.maximum)


_set_operators()
