"""Where rows lie in memory, as tables of records that compiled loops read (see `memory.plan`)."""

from __future__ import annotations

from typing import NamedTuple

from edbatch.records import record_type


class Columns(NamedTuple):
    """What a window shows of an arena.

    Attributes:
        arena: its number.
        column: where a row begins in the arena's row.
        width: entries of a row as seen; 0: not contiguous.
    """

    arena: int
    column: int
    width: int


class Rows(NamedTuple):
    """Where the rows of an arena lie.

    Attributes:
        address: of the first; 0: there is none.
        width: entries from row to row.
    """

    address: int
    width: int


class Kept(NamedTuple):
    """Where a type's results are kept together with what is saved.

    Attributes:
        address: of the first row; 0: nothing is saved, results go to their arena right away.
        width: entries from row to row.
        n: rows there are so far.
    """

    address: int
    width: int
    n: int


COLUMNS, ROWS, KEPT = (record_type(form._fields) for form in (Columns, Rows, Kept))
