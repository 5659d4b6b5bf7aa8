"""Tables of records: NumPy arrays whose fields are declared, and explained, by a named tuple."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

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


class Entry(NamedTuple):
    """A table of a directory, by which compiled code finds it; see `compiling.directory`.

    Attributes:
        address: of its first entry.
        length: entries.
    """

    address: int
    length: int


ENTRY = record_type(Entry._fields)
