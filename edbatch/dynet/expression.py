"""Expressions with DyNet's operators and reads, and mini-batches of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

import numpy as np

import edbatch as eb
from edbatch.dynet import reads
from edbatch.dynet.arithmetic import number_of, power, with_operators
from edbatch.dynet.implicit import STALE, DynetError, DynetIndexError, DynetTypeError, implicit
from edbatch.errors import EdBatchError, EdBatchWarning, shown
from edbatch.graph.expression_array import ExpressionArray

_ALL = slice(None)


class Reads:
    """What DyNet's programs read of expressions and parameters, of the array that `_array` gives."""

    __slots__ = ()

    def _array(self, recalculate: bool) -> Any:
        raise NotImplementedError

    def _count(self) -> int:
        return 1

    def npvalue(self, recalculate: bool = False) -> np.ndarray:
        """The value as an array; the entries of a mini-batch, if there are several, along the last axis."""
        return reads.np_value(self._array(recalculate), self._count())

    def vec_value(self, recalculate: bool = False) -> list[float]:
        """All entries of the value in a list, column by column."""
        return reads.vec_value(self._array(recalculate), self._count())

    def scalar_value(self, recalculate: bool = False) -> float:
        """The only entry of the value."""
        return reads.scalar_value(self._array(recalculate))

    def value(self, recalculate: bool = False) -> Any:
        """The value: a number, a list of numbers if it has one axis, an array if it has more."""
        return reads.value_of(self._array(recalculate), self._count())

    def tensor_value(self, recalculate: bool = False) -> reads.Tensor:
        """The value as a tensor, which knows `argmax`, `topk` and `categorical_sample_log_prob`."""
        return reads.Tensor(self.npvalue(recalculate), self._count())

    def forward(self, recalculate: bool = False) -> None:
        """Compute the value; reading it does, too."""
        self._array(recalculate)


@with_operators
class Expression(Reads, eb.Expression, gc=False, eq=False):
    """One value of the implicit graph; of one entry of a mini-batch where it is not a `BatchedExpression`.

    Example:
        >>> from edbatch import dynet as dy
        >>> x = dy.inputVector([1, 2, 3])
        >>> (x * 2 + 1).value(), x.dim()
        ([3.0, 5.0, 7.0], ((3,), 1))
        >>> dy.close_cg()
    """

    #: The class of inputs that may be set, see `Columns.handle`.
    of_inputs: ClassVar[type[Any]]

    def dim(self) -> tuple[tuple[int, ...], int]:
        """Its dimensions, and how many entries its mini-batch has."""
        return reads.dim_of(self.spec.shape), 1

    def backward(self, full: bool = False) -> None:
        """Add the gradients of this number to those of the parameters it depends on; `full` is no matter here."""
        if self.spec.size != 1:
            raise EdBatchError(f"backward() can only be called on scalar nodes, but node has dimension: {self.dim()}")
        if self.graph is not implicit.graph:
            raise DynetError(STALE)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EdBatchWarning)
            implicit.go_back(self, np.ones(self.spec.shape))

    def gradient(self) -> np.ndarray:
        """The gradient of what `backward` was last called on with respect to this."""
        return reads.np_value(_gradient(eb.Expression.gradient, self), 1)

    @classmethod
    def of_its_own(cls) -> type[Expression]:
        """A class like this one, with classes of its own for mini-batches and inputs, all of which `refuse`s."""

        class Since(cls, gc=False, eq=False):  # type: ignore[call-arg,misc,valid-type]
            """Expressions that were made since a checkpoint."""

        class BatchSince(cls.of_arrays, gc=False, eq=False):  # type: ignore[call-arg,misc,name-defined]
            """Mini-batches of such."""

        class SettableSince(cls.of_inputs, gc=False, eq=False):  # type: ignore[call-arg,misc,name-defined]
            """Inputs of such."""

        Since.of_arrays, Since.of_inputs = BatchSince, SettableSince
        return Since

    @classmethod
    def refuse(cls) -> None:
        """Have every use of an expression of this class, or of those that belong to it, be an error."""
        for kind in (cls, cls.of_arrays, cls.of_inputs):
            for name in ("graph", "id", "spec"):
                setattr(kind, name, property(_refused))

    def __getitem__(self, key: Any) -> Any:
        return item(self, key)

    def __pow__(self, other: Any) -> Any:
        return power(self, number_of(other) if isinstance(other, eb.Expression | eb.Parameter) else other)

    def __bool__(self) -> bool:
        return True

    __eq__ = object.__eq__  # type: ignore[assignment]
    __ne__ = object.__ne__  # type: ignore[assignment]
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"expression {self.id & 0xFFFFFFFF}/{implicit.version}"

    __str__ = __repr__

    def _array(self, recalculate: bool) -> Any:
        if self.graph is not implicit.graph:
            raise DynetError(STALE)
        implicit.compute(recalculate)
        return self.graph.value(self)


class BatchedExpression(Expression, ExpressionArray, gc=False, eq=False):
    """A mini-batch: expressions of one shape, which functions and operators take one by one.

    Example:
        >>> from edbatch import dynet as dy
        >>> xs = dy.inputTensor([[1, 2, 3], [4, 5, 6]], batched=True)
        >>> xs.dim(), dy.sum_batches(xs).value()
        (((2,), 3), [6.0, 15.0])
        >>> dy.close_cg()
    """

    def dim(self) -> tuple[tuple[int, ...], int]:
        """The dimensions of an entry, and how many there are."""
        return reads.dim_of(self.spec.shape), len(self)

    def backward(self, full: bool = False) -> NoReturn:
        """Refuse: gradients are of one number."""
        raise EdBatchError(f"backward() can only be called on scalar nodes, but node has dimension: {self.dim()}")

    def gradient(self) -> np.ndarray:
        """As of one expression; the entries along the last axis."""
        return reads.np_value(_gradient(ExpressionArray.gradient, plain(self)), len(self))

    def __getitem__(self, key: Any) -> Any:
        return item(self, key)

    def _count(self) -> int:
        return len(self)

    def _array(self, recalculate: bool) -> Any:
        base: Any = self.graph.base
        if base is not implicit.graph:
            raise DynetError(STALE)
        implicit.compute(recalculate)
        found: Any = base.rows(self.ids, self.spec)
        return found[0] if len(found) == 1 else found


class SettableExpression(Expression, gc=False, eq=False):
    """An input whose value may be set anew; what depends on it is computed again when it is next read."""

    def set(self, value: Any) -> None:
        """Give it another value of as many entries."""
        held = implicit.settable.get(self.id)
        if held is None or self.graph is not implicit.graph:
            raise DynetError(STALE)
        held[...] = np.reshape(value, held.shape, order="F")
        implicit.outdated = True


def _refused(_: Any) -> NoReturn:
    raise DynetError(STALE)


Expression.of_arrays, Expression.of_inputs = BatchedExpression, SettableExpression
implicit.handle = Expression


def _gradient(gradient: Callable[[Any], Any], x: Any) -> Any:
    try:
        return gradient(x)
    except EdBatchError as error:
        raise DynetError(str(error)) from None


def plain(xs: Any) -> ExpressionArray:
    """A mini-batch as EdBatch's array of expressions, whose index is of its entries."""
    return ExpressionArray(xs.graph, xs.id, xs.spec)


def item(x: Any, key: Any) -> Any:
    """`x[key]` along the axes of an expression, or of each in a mini-batch.

    Raises:
        DynetIndexError: the index is out of range; also an IndexError, as loops over rows expect.
    """
    shape = reads.dim_of(x.spec.shape)
    if not x.spec.shape:
        x = eb.reshape(x, (1,))
    parts = key if isinstance(key, tuple) else (key,)
    if len(parts) > len(shape):
        return _entries(x, parts)
    for part, size in zip(parts, shape, strict=False):
        if isinstance(part, slice):
            if part.stop is not None and part.stop > size:
                raise DynetIndexError(f"require 0 < to <= dim_size, was {part.stop} of {size}")
        elif not isinstance(part, int | np.integer):
            raise DynetTypeError(f"Expression key must be int or slice or tuple of slices: {shown(part)}")
        elif not -size <= part < size:
            raise DynetIndexError(f"Index too {'large' if part > 0 else 'small'}: {part} of {size} entries")
    if isinstance(x, ExpressionArray):
        return ExpressionArray.__getitem__(x, (_ALL, *parts))
    return eb.Expression.__getitem__(x, key)


def _entries(x: Any, parts: tuple[Any, ...]) -> Any:
    """`x[..., entries]`: the axis behind the last is the mini-batch."""
    *parts_of_each, entries = parts
    found = item(x, tuple(parts_of_each))
    if len(parts_of_each) == len(reads.dim_of(x.spec.shape)):
        if isinstance(found, ExpressionArray):
            return one_or_batch(plain(found)[entries])
        if isinstance(entries, slice) and entries in (_ALL, slice(0, 1), slice(1)):
            return found  # of a mini-batch of one, all
    raise DynetIndexError(f"expected at most {len(reads.dim_of(x.spec.shape))} indices, got {len(parts)}")


def one_or_batch(xs: Any) -> Any:
    """A mini-batch of a single entry is that entry."""
    return plain(xs)[0] if isinstance(xs, ExpressionArray) and len(xs) == 1 else xs
