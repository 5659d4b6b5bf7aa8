"""Tables and JSON on stdout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from tabulate import SEPARATING_LINE, tabulate

from edbatch.base.table import printable


def print_table(headers: Sequence[str], rows: Sequence[Sequence[Any]], left: int = 1) -> None:
    """Print an aligned table.

    Args:
        headers: one per column.
        rows: cells; integers get thousands separators, None is an empty cell, an empty row a line.
        left: so many columns are aligned to the left, the others to the right.

    Example:
        >>> print_table(["graph", "nodes"], [["a.txt", 12345], ["another.txt", None]])
        -----------  ------
        graph         nodes
        -----------  ------
        a.txt        12,345
        another.txt
        -----------  ------
    """
    align = ["left" if column < left else "right" for column in range(len(headers))]
    cells = [[_text(cell) for cell in row] or SEPARATING_LINE for row in rows]
    lines = [list(headers), SEPARATING_LINE, *cells]  # as a header, the first line would widen every column
    print(tabulate(lines, tablefmt="simple", colalign=align, disable_numparse=True))


def counted(count: int, noun: str) -> str:
    """A number and what it counts.

    Example:
        >>> counted(1, "graph"), counted(1200, "batch")
        ('1 graph', '1,200 batches')
    """
    plural = "" if count == 1 else "es" if noun.endswith("ch") else "s"
    return f"{count:,} {noun}{plural}"


def print_json(value: Any) -> None:
    """Print one JSON value, indented."""
    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    return f"{cell:,}" if isinstance(cell, int) else printable(str(cell))
