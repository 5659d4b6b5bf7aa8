"""Parameters and tables of them: expressions that need no graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.dynet.arithmetic import dim_of, power, product, with_operators
from edbatch.dynet.checked import integer, integers
from edbatch.dynet.expression import Reads, item, node, one_or_batch
from edbatch.dynet.files import populate_one, save_one
from edbatch.dynet.implicit import implicit


def _called(kind: type[Any]) -> Any:
    """Shapes or names that EdBatch reads, and DyNet's programs call."""
    return type(kind.__name__, (kind,), {"__slots__": (), "__call__": lambda self: kind(self)})


_Shape, _Name = _called(tuple), _called(str)


class _Common(Reads):
    """What parameters and tables share."""

    __slots__ = ()
    save, populate = save_one, populate_one

    def __init__(self: Any, name: str, array: np.ndarray, device: Any = None) -> None:
        self._updated = True
        super().__init__(_Name(name), array, device)  # type: ignore[call-arg]

    @property
    def shape(self: Any) -> Any:
        """The shape: a tuple, which may also be called."""
        return _Shape(self.spec.shape)

    def _array(self: Any, recalculate: bool) -> Any:
        return eb.Parameter.value(self)

    def as_array(self: Any) -> np.ndarray:
        """The values, an array of float64."""
        return eb.Parameter.value(self).astype(np.float64)

    def grad_as_array(self: Any) -> np.ndarray:
        """The gradient, an array of float64."""
        return self.grad().astype(np.float64)

    def is_updated(self: Any) -> bool:
        """Whether trainers change it."""
        return self._updated

    def set_updated(self: Any, b: bool) -> None:
        """Whether trainers change it."""
        self._updated = bool(b)

    def backward(self: Any, full: bool = False) -> None:
        """As of an expression."""
        node(self).backward(full)

    def __getitem__(self: Any, key: Any) -> Any:
        return item(self, key)

    __pow__ = power

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__


@with_operators
class Parameters(_Common, eb.Parameter):
    """A learned array, which is an expression of any graph.

    Example:
        >>> from edbatch import dynet as dy
        >>> W = dy.ParameterCollection().add_parameters((2, 3), init=1.0)
        >>> (W * dy.inputVector([1, 2, 3])).value(), W.shape(), W.name()
        ([6.0, 6.0], (2, 3), '/_0')
        >>> dy.close_cg()
    """

    def dim(self) -> tuple[tuple[int, ...], int]:
        """Its dimensions, and 1."""
        return dim_of(self.spec.shape), 1

    def expr(self, update: bool = True) -> Any:
        """Itself; or its value as an expression through which no gradient flows."""
        return self if update else eb.stop_gradient(node(self))

    def __repr__(self) -> str:
        return f"Parameter {self.name}"


@with_operators
class LookupParameters(_Common, eb.LookupParameters):
    """A table of parameters: `table[3]` is a row, `table.batch([3, 4])` a mini-batch of rows.

    As an expression, the number of the row is its last axis, as in DyNet.

    Example:
        >>> from edbatch import dynet as dy
        >>> table = dy.ParameterCollection().add_lookup_parameters((3, 2), init=1.0)
        >>> table[1].value(), table.batch([0, 1]).dim(), table.dim()
        ([1.0, 1.0], ((2,), 2), ((2, 3), 1))
        >>> dy.close_cg()
    """

    def dim(self) -> tuple[tuple[int, ...], int]:
        """The dimensions of the whole table, and 1."""
        shape = self.spec.shape
        return (*shape[1:], shape[0]), 1

    def expr(self, update: bool = True) -> Any:
        """The whole table."""
        whole = eb.transpose(node(self), (*range(1, len(self.spec.shape)), 0))
        return whole if update else eb.stop_gradient(whole)

    def _array(self, recalculate: bool) -> Any:
        return np.moveaxis(self.as_array(), 0, -1)

    def batch(self, i: Sequence[int], update: bool = True) -> Any:
        """Rows, as a mini-batch."""
        implicit.recorded_into()
        rows: Any = np.array(i if isinstance(i, np.ndarray) and i.dtype.kind in "iu" else integers("lookup_batch", i))
        found = one_or_batch(eb.lookup(self, rows))
        return found if update else eb.stop_gradient(found)

    def init_row(self, i: int, row: Sequence[float]) -> None:
        """Overwrite one row."""
        table = eb.Parameter.value(self).copy()
        table[integer("init_row: i", i)] = np.reshape(row, self.spec.shape[1:])
        self.set_value(table)

    def init_from_array(self, arr: Any) -> None:
        """Overwrite all rows."""
        table, found = eb.Parameter.value(self).copy(), np.reshape(arr, (-1, *self.spec.shape[1:]))
        table[: len(found)] = found
        self.set_value(table)

    def row_as_array(self, row: Any) -> np.ndarray:
        """One row, or those that are listed."""
        return self.as_array()[row]

    def row_grad_as_array(self, row: Any) -> np.ndarray:
        """The gradient of one row, or of those that are listed."""
        return self.grad_as_array()[row]

    rows_as_array, rows_grad_as_array = row_as_array, row_grad_as_array

    def __getitem__(self, index: int) -> Any:
        if implicit.graph is None:
            implicit.opened()
        if index.__class__ is not int or index < 0:  # rows do not count from the end
            index = integer(f"lookup in {self.name}: index", index)
        return eb.lookup(self, index)

    def __len__(self) -> int:
        return self.spec.shape[0]

    def __mul__(self, other: Any) -> Any:
        return product(self.expr(), other)

    def __repr__(self) -> str:
        return f"LookupParameter {self.name}"
