"""Tables of records: NumPy arrays whose fields are declared, and explained, by a named tuple."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from struct import Struct
from typing import Any

import numpy as np


def record_type(fields: Iterable[str], integer: type[np.signedinteger[Any]] = np.int64) -> np.dtype:
    """The type of records with these fields, for arrays that compiled functions read: `table[at]["field"]`.

    Example:
        >>> from typing import NamedTuple
        >>> class Segment(NamedTuple):
        ...     begin: int
        ...     n: int
        >>> table = np.array([Segment(0, 2), Segment(2, 5)], record_type(Segment._fields))
        >>> table["n"].sum(), Segment(*table[1].tolist())
        (np.int64(7), Segment(begin=2, n=5))
    """
    return np.dtype([(name, integer) for name in fields], align=True)


def records(fields: Sequence[int] | Sequence[Sequence[int]], kind: np.dtype) -> np.ndarray:
    """Records of int64, given the fields of each, or of all; NumPy makes them of tuples in three times the time."""
    return np.frombuffer(np.array(fields, np.int64).reshape(-1), kind)


def joined(first: np.ndarray, then: np.ndarray) -> np.ndarray:
    """Records of int64, and after them others of one type; NumPy would compare the fields first."""
    return np.frombuffer(np.concatenate([words_of(first).reshape(-1), words_of(then).reshape(-1)]), first.dtype)


def words_of(table: np.ndarray) -> np.ndarray:
    """The fields of records of int64, [records, fields]: these are read and written in less time than records.

    Of an array as bytes: for a view NumPy asks Python whether it is safe.
    """
    return np.frombuffer(table, np.int64).reshape(len(table), table.dtype.itemsize // 8)


@lru_cache(1 << 12)
def packing(code: str, count: int) -> Struct:
    """Return what puts so many Python integers ("i": 32 bits, "q": 64) into memory, ten times as fast as NumPy."""
    return Struct(f"{count}{code}")


#: Of directories (see `compiling.array_table`), and of no other array of two axes that compiled code is given.
WORD = np.dtype(np.uint64)
