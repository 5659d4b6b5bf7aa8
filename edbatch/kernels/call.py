"""One op on a batch, as data: what a device needs to know to make a kernel for it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from edbatch.base.exact import exact


@dataclass(frozen=True)
class Layout:
    """How the entries of a row lie in memory.

    Args:
        shape: of the row.
        strides: entries between neighbours along each axis, from the row's first entry on.
        first, stored: if `stored` is given, these positions (from `first` on) are not places in memory: they number,
            row by row, the entries of what lies so.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    first: int = 0
    stored: Layout | None = None

    @property
    def size(self) -> int:
        """How many entries."""
        return math.prod(self.shape)

    @property
    def span(self) -> int:
        """How many entries of memory lie from the first to the last of these, or of those that these number."""
        if self.stored is not None:
            return max(self.stored.size, self.stored.span)
        return 1 + sum((size - 1) * abs(stride) for size, stride in zip(self.shape, self.strides, strict=True))


@dataclass(frozen=True, eq=False)
class Call:
    """An op. Two are equal if they compute the same bits: of attributes that `==` takes for equal, too.

    Args:
        op: its name in the op table; "copy" copies its operand.
        scalar: of an element-wise op, the expression of one entry; otherwise empty.
        attributes: of the op.
        operands, out: how rows lie.
        integer: the op's integer, if it is the same for all rows; None if rows have their own, or there is none.
        dtype: of all numbers.
    """

    op: str
    scalar: str
    attributes: tuple[tuple[str, Any], ...]
    operands: tuple[Layout, ...]
    out: Layout
    integer: int | None = None
    dtype: str = "float32"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Call) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @cached_property
    def _key(self) -> Any:
        return self.op, self.scalar, exact(self.attributes), self.operands, self.out, self.integer, self.dtype


@dataclass(frozen=True)
class Work:
    """How a kernel shares out its work.

    Args:
        groups: parts of a row that are computed each by itself.
        lanes: threads for each.
    """

    groups: int
    lanes: int


def by_rows(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of an array whose entries lie row by row.

    Example:
        >>> by_rows((2, 3, 4))
        (12, 4, 1)
    """
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
