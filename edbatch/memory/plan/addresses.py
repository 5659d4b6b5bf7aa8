"""Where rows lie in memory, in bytes, as tables of records that compiled loops read (see `memory.plan.format`)."""

from __future__ import annotations

from typing import NamedTuple

from edbatch.base.records import record_type


class Columns(NamedTuple):
    """What a window shows of an arena.

    Attributes:
        arena: its number.
        begin: from the beginning of the arena's row to that of the row as seen.
        width: of a row as seen, entries side by side.
        scattered: number of the record `Scattered` if entries do not lie side by side; -1: they do.
    """

    arena: int
    begin: int
    width: int
    scattered: int = -1


class Rows(NamedTuple):
    """Where the rows of an arena lie.

    Attributes:
        address: of the first; 0: there is none.
        stride: from row to row.
        used: how many there are.
        room: how many there is room for.
    """

    address: int
    stride: int
    used: int = 0
    room: int = 0


class SavingRows(NamedTuple):
    """Where values of nodes of a type are saved.

    Attributes:
        address: of the first row; 0: nothing is saved.
        stride: from row to row.
        n: rows there are so far.
    """

    address: int
    stride: int
    n: int


class Scattered(NamedTuple):
    """Kernels for rows whose entries do not lie side by side.

    What each is given (see `kernels.language.given`) is written in a list of words, but for its places and offsets.

    Attributes:
        entries: of a row.
        axes: of the first two kernels; the third has one more, of lists.
        read, read_given, read_end: copies rows side by side; which of the words it is given.
        add, add_given, add_end: adds rows that lie side by side, one after the other.
        add_lists, lists_given, lists_end: adds the sums of lists of such rows.
    """

    entries: int
    axes: int
    read: int
    read_given: int
    read_end: int
    add: int
    add_given: int
    add_end: int
    add_lists: int
    lists_given: int
    lists_end: int


COLUMNS, ROWS, SAVING, SCATTERED = (record_type(form._fields) for form in (Columns, Rows, SavingRows, Scattered))
