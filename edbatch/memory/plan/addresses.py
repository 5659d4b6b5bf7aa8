"""Where rows lie in memory, in bytes, as tables of records that compiled loops read (see `memory.plan.format`)."""

from __future__ import annotations

from typing import NamedTuple

from edbatch.base.records import record_type


class Columns(NamedTuple):
    """What a window shows of an arena.

    Attributes:
        arena: its number.
        begin: from the beginning of the arena's row to that of the row as seen.
        width: of a row as seen; 0: not contiguous.
    """

    arena: int
    begin: int
    width: int


class Rows(NamedTuple):
    """Where the rows of an arena lie.

    Attributes:
        address: of the first; 0: there is none.
        stride: from row to row.
    """

    address: int
    stride: int


class Kept(NamedTuple):
    """Where a type's results are kept together with what is saved.

    Attributes:
        address: of the first row; 0: nothing is saved, results go to their arena right away.
        stride: from row to row.
        n: rows there are so far.
    """

    address: int
    stride: int
    n: int


COLUMNS, ROWS, KEPT = (record_type(form._fields) for form in (Columns, Rows, Kept))
