"""Expressions with DyNet's operators and reads, and mini-batches of them.

What is read is a number, a list by columns, or an array of float64 whose last axis is the mini-batch.
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np

import edbatch as eb
from edbatch.dynet.arithmetic import dim_of, power, with_operators
from edbatch.dynet.implicit import STALE, DynetError, DynetIndexError, DynetTypeError, implicit
from edbatch.errors import EdBatchError, EdBatchWarning, shown
from edbatch.graph.cell.trace import Payload
from edbatch.graph.expression_array import ExpressionArray
from edbatch.graph.record import parameter_node

_ALL = slice(None)


class Tensor:
    """A value that is read whole, by `expression.tensor_value()`; the last axis may be of a mini-batch."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def as_numpy(self) -> np.ndarray:
        """The value."""
        return self._array

    def argmax(self, dim: int = 0, num: int = 1) -> Tensor:
        """The numbers of the `num` largest entries along an axis, the largest first."""
        return Tensor(np.argsort(-self._array, dim, kind="stable").take(range(num), dim))


class Reads:
    """What DyNet's programs read of expressions and parameters, of the array that `_array` gives."""

    __slots__ = ()

    def _array(self, recalculate: bool) -> Any:
        """The value; entries of a mini-batch along the first axis."""
        raise NotImplementedError

    def _count(self) -> int:
        """How many entries the mini-batch has."""
        return 1

    def npvalue(self, recalculate: bool = False) -> np.ndarray:
        """The value as an array; the entries of a mini-batch, if there are several, along the last axis."""
        return np_value(self._array(recalculate), self._count())

    def vec_value(self, recalculate: bool = False) -> list[float]:
        """All entries of the value in a list, column by column."""
        return Reads.npvalue(self, recalculate).reshape(-1, order="F").tolist()

    def scalar_value(self, recalculate: bool = False) -> float:
        """The only entry of the value."""
        found = np.asarray(self._array(recalculate))
        if found.size != 1:
            raise DynetError(f"scalar_value: Input tensor has more than one element, it has {found.size}")
        return float(found.item())

    def value(self, recalculate: bool = False) -> Any:
        """The value: a number, a list of numbers if it has one axis, an array if it has more."""
        found = Reads.npvalue(self, recalculate)
        if found.ndim - (self._count() > 1) > 1:
            return found
        return float(found.item()) if found.size == 1 else found.reshape(-1, order="F").tolist()

    def tensor_value(self, recalculate: bool = False) -> Tensor:
        """The value as a tensor, which knows `argmax`."""
        return Tensor(self.npvalue(recalculate))

    def forward(self, recalculate: bool = False) -> None:
        """Compute the value; reading it does, too."""
        self._array(recalculate)


def np_value(array: Any, count: int) -> np.ndarray:
    """An array of DyNet's dimensions; `count` entries of a mini-batch become the last axis."""
    found = np.asarray(array, np.float64)
    if count == 1:
        return np.array(found.reshape(dim_of(found.shape)), order="F")
    return np.array(np.moveaxis(found.reshape(count, *dim_of(found.shape[1:])), 0, -1), order="F")


@with_operators
class Expression(Reads, eb.Expression):
    """One value of the implicit graph; of one entry of a mini-batch where it is not a `BatchedExpression`.

    Example:
        >>> from edbatch import dynet as dy
        >>> x = dy.inputVector([1, 2, 3])
        >>> (x * 2 + 1).value(), x.dim()
        ([3.0, 5.0, 7.0], ((3,), 1))
        >>> dy.close_cg()
    """

    __slots__ = ()

    #: The class of inputs that may be set, see `Columns.expression_class`.
    of_inputs: ClassVar[type[Any]]

    def dim(self) -> tuple[tuple[int, ...], int]:
        """The dimensions of an entry, and how many entries the mini-batch has."""
        return dim_of(self.spec.shape), self._count()

    def backward(self, full: bool = False) -> None:
        """Add the gradients of this number to those of the parameters it depends on; `full` is no matter here."""
        if self.spec.size != 1 or isinstance(self, ExpressionArray):
            raise EdBatchError(f"backward() can only be called on scalar nodes, but node has dimension: {self.dim()}")
        if self.graph is not implicit.graph:
            raise DynetError(STALE)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EdBatchWarning)
            implicit.go_back(self, np.ones(self.spec.shape))

    def gradient(self) -> np.ndarray:
        """The gradient of what `backward` was last called on with respect to this; of a mini-batch, as `npvalue`."""
        try:
            batched = isinstance(self, ExpressionArray)
            found = ExpressionArray.gradient(plain(self)) if batched else eb.Expression.gradient(self)
            return np_value(found, self._count())
        except EdBatchError as error:
            raise DynetError(str(error)) from None

    def __getitem__(self, key: Any) -> Any:
        return item(self, key)

    __pow__ = power

    def __bool__(self) -> bool:
        return True

    __eq__ = object.__eq__  # type: ignore[assignment]
    __ne__ = object.__ne__  # type: ignore[assignment]
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"expression {self.id & 0xFFFFFFFF}/{implicit.version}"

    __str__ = __repr__

    def _array(self, recalculate: bool) -> Any:
        if self.graph.is_trace:
            return self.graph.value(self)  # which refuses
        if self.graph is not implicit.graph:
            raise DynetError(STALE)
        implicit.compute(recalculate)
        return self.graph.value(self)


class BatchedExpression(Expression, ExpressionArray):  # type: ignore[misc]
    """A mini-batch: expressions of one shape, which functions and operators take one by one.

    Example:
        >>> from edbatch import dynet as dy
        >>> xs = dy.inputTensor([[1, 2, 3], [4, 5, 6]], batched=True)
        >>> xs.dim(), dy.sum_batches(xs).value()
        (((2,), 3), [6.0, 15.0])
        >>> dy.close_cg()
    """

    __slots__ = ()

    def _count(self) -> int:
        return len(self)

    def _array(self, recalculate: bool) -> Any:
        base: Any = self.graph.base
        if base is not implicit.graph:
            raise DynetError(STALE)
        implicit.compute(recalculate)
        found: Any = base.rows(self.ids, self.spec)
        return found[0] if len(found) == 1 else found


class SettableExpression(Expression):
    """An input whose value may be set anew; what depends on it is computed again when it is next read."""

    __slots__ = ()

    def set(self, value: Any) -> None:
        """Give it another value of as many entries."""
        held = implicit.settable.get(self.id)
        if held is None or self.graph is not implicit.graph:
            raise DynetError(STALE)
        held[...] = np.reshape(value, held.shape, order="F")
        implicit.outdated = True


Expression.of_arrays, Expression.of_inputs = BatchedExpression, SettableExpression
implicit.expression_class = Expression


def node(x: Any) -> Any:
    """A parameter as an expression."""
    return parameter_node(implicit.recorded_into(), x) if isinstance(x, eb.Parameter) else x


def count(x: Any) -> int:
    """How many entries a mini-batch has; 1 of what is none."""
    return len(x) if isinstance(x, ExpressionArray) else 1


def plain(xs: Any) -> ExpressionArray:
    """A mini-batch as EdBatch's array of expressions, whose index is of its entries."""
    return ExpressionArray(xs.graph, xs.id, xs.spec)


def one_or_batch(xs: Any) -> Any:
    """A mini-batch of a single entry is that entry."""
    return plain(xs)[0] if isinstance(xs, ExpressionArray) and len(xs) == 1 else xs


def item(x: Any, key: Any) -> Any:
    """`x[key]` along the axes of an expression, or of each in a mini-batch; the mini-batch is the axis behind them."""
    x = node(x) if x.spec.shape else eb.reshape(x, (1,))
    shape, parts = x.spec.shape, list(key) if isinstance(key, tuple) else [key]
    entries = None
    if len(parts) == len(shape) + 1:
        entries = parts.pop()
    for part, size in zip(parts, shape, strict=False):
        if not isinstance(part, int | np.integer | slice | Payload):
            raise DynetTypeError(f"Expression key must be int or slice or tuple of slices: {shown(part)}")
        if isinstance(part, slice) and (part.stop or 0) > size:
            raise DynetIndexError(f"require 0 < to <= dim_size, was {part.stop} of {size}")
    try:
        if not isinstance(x, ExpressionArray):
            if entries is not None and not (isinstance(entries, slice) and range(1)[entries] == range(1)):
                raise DynetIndexError(f"{entries}: out of range for a mini-batch of one")
            return eb.Expression.__getitem__(x, tuple(parts))
        found = ExpressionArray.__getitem__(x, (_ALL, *parts))
        return found if entries is None else one_or_batch(plain(found)[entries])
    except EdBatchError as error:
        raise DynetIndexError(str(error)) from None
