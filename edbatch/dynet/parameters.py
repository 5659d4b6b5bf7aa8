"""Parameters and tables of them: expressions that need no graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.dynet import reads
from edbatch.dynet.arithmetic import number_of, power, product, with_operators
from edbatch.dynet.checked import integer, integers
from edbatch.dynet.expression import Reads, item, one_or_batch
from edbatch.dynet.implicit import DynetIndexError, implicit
from edbatch.errors import EdBatchError
from edbatch.graph.record import parameter_node


class _Shape(tuple[int, ...]):
    """A shape, which EdBatch reads and DyNet's programs call."""

    __slots__ = ()

    def __call__(self) -> tuple[int, ...]:
        return tuple(self)


class _Name(str):
    """A name, which EdBatch reads and DyNet's programs call."""

    __slots__ = ()

    def __call__(self) -> str:
        return str(self)


class _Common(Reads):
    """What parameters and tables share."""

    __slots__ = ()

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

    def gradient(self: Any) -> np.ndarray:
        """The gradient, an array of float64."""
        return self.grad_as_array()

    def zero(self: Any) -> None:
        """Set all values to zero."""
        self.set_value(np.zeros(self.spec.shape))

    def scale(self: Any, s: float) -> None:
        """Multiply all values."""
        self.set_value(eb.Parameter.value(self) * s)

    def scale_gradient(self: Any, s: float) -> None:
        """Multiply the gradient."""
        self.scale_grad(s)

    def clip_inplace(self: Any, left: float, right: float) -> None:
        """Limit all values to a range."""
        self.set_value(eb.Parameter.value(self).clip(left, right))

    def is_updated(self: Any) -> bool:
        """Whether trainers change it."""
        return self._updated

    def set_updated(self: Any, b: bool) -> None:
        """Whether trainers change it."""
        self._updated = bool(b)

    def save(self: Any, fname: str, key: str = "", append: bool = False) -> None:
        """Write it to a file in DyNet's text format, under `key`."""
        from edbatch.dynet.files import save_one

        save_one(self, fname, key, append)

    def populate(self: Any, fname: str, key: str = "") -> None:
        """Read its values from a file in DyNet's text format: of the parameter `key`, by default of the first."""
        from edbatch.dynet.files import populate_one

        populate_one(self, fname, key)

    def write_to_textfile(self: Any, fname: str, key: str = "", append: bool = False) -> None:
        """As `save`."""
        self.save(fname, key, append)

    def populate_from_textfile(self: Any, fname: str, key: str = "") -> None:
        """As `populate`."""
        self.populate(fname, key)

    def backward(self: Any, full: bool = False) -> None:
        """As of an expression."""
        self._node().backward(full)

    def _node(self: Any) -> Any:
        return parameter_node(implicit.opened(), self)

    def __getitem__(self: Any, key: Any) -> Any:
        return item(self._node(), key)

    def __pow__(self: Any, other: Any) -> Any:
        return power(self._node(), number_of(other) if isinstance(other, eb.Expression) else other)

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
        return reads.dim_of(self.spec.shape), 1

    def expr(self, update: bool = True) -> Any:
        """Itself; or its value as an expression through which no gradient flows."""
        return self if update else eb.stop_gradient(self._node())

    def set_value(self, arr: Any) -> None:
        """Overwrite the values."""
        found = np.asarray(arr, np.float64)
        if found.shape != self.spec.shape:
            raise EdBatchError(
                f"Shape of values and parameter don't match in Parameters.set_value: {found.shape} != {self.spec.shape}"
            )
        eb.Parameter.set_value(self, found)

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
        axes = tuple(range(1, len(self.spec.shape)))
        whole = eb.transpose(self._node(), (*axes, 0))
        return whole if update else eb.stop_gradient(whole)

    def npvalue(self, recalculate: bool = False) -> np.ndarray:
        """The whole table, the number of the row as the last axis."""
        return np.moveaxis(self.as_array(), 0, -1)

    def _array(self, recalculate: bool) -> Any:
        return self.npvalue()

    def batch(self, i: Sequence[int], update: bool = True) -> Any:
        """Rows, as a mini-batch."""
        implicit.expect()
        rows: Any = np.array(i if isinstance(i, np.ndarray) and i.dtype.kind in "iu" else integers("lookup_batch", i))
        found: Any = eb.lookup(self, rows)
        if len(rows) == 1:
            found = one_or_batch(found)
        return found if update else eb.stop_gradient(found)

    def init_row(self, i: int, row: Sequence[float]) -> None:
        """Overwrite one row."""
        table = eb.Parameter.value(self).copy()
        if integer("init_row: i", i) >= len(table):
            raise DynetIndexError(f"init_row: row {i} is out of range for {len(table)} rows")
        table[i] = np.reshape(row, self.spec.shape[1:])
        self.set_value(table)

    def init_from_array(self, arr: Any) -> None:
        """Overwrite all rows."""
        found = np.asarray(arr, np.float64)
        if found.shape[0] > self.spec.shape[0] or found.shape[1:] != self.spec.shape[1:]:
            raise EdBatchError(f"init_from_array: expected an array of shape {self.spec.shape}, got {found.shape}")
        table = eb.Parameter.value(self).copy()
        table[: len(found)] = found
        self.set_value(table)

    def row_as_array(self, row: int) -> np.ndarray:
        """One row."""
        return self.as_array()[row]

    def rows_as_array(self, rows: Sequence[int]) -> np.ndarray:
        """Several rows."""
        return self.as_array()[list(rows)]

    def row_grad_as_array(self, row: int) -> np.ndarray:
        """The gradient of one row."""
        return self.grad_as_array()[row]

    def rows_grad_as_array(self, rows: Sequence[int]) -> np.ndarray:
        """The gradients of several rows."""
        return self.grad_as_array()[list(rows)]

    def __getitem__(self, index: int) -> Any:
        if implicit.graph is None:
            implicit.expect()
        return eb.lookup(self, index) if index.__class__ is int and index >= 0 else lookup_row(self, index)

    def __len__(self) -> int:
        return self.spec.shape[0]

    def __mul__(self, other: Any) -> Any:
        return product(self.expr(), other)

    def __repr__(self) -> str:
        return f"LookupParameter {self.name}"


def lookup_row(table: LookupParameters, index: int) -> Any:
    """One row; rows do not count from the end."""
    return eb.lookup(table, integer(f"lookup in {table.name}: index", index))
