"""Tables for terminals and notebooks, and text that others chose, there or in a log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edbatch.base.lazy import LazyModule

tabulate = LazyModule("tabulate")


@dataclass(frozen=True)
class Table:
    """Rows of texts below their headers; `print` it, or let a notebook show it.

    Args:
        headers: one per column.
        rows: of as many texts.
        align: per column "left" or "right".

    Example:
        >>> print(Table(("name", "entries"), [("W", "320"), ("b", "5")], ("left", "right")))
        name      entries
        ------  ---------
        W             320
        b               5
    """

    headers: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    align: tuple[str, ...]

    def __str__(self) -> str:
        return self._format("simple")

    def plain(self) -> str:
        """The rows alone."""
        return tabulate.tabulate(self.rows, (), "plain", colalign=self.align, disable_numparse=True)

    def _repr_html_(self) -> str:
        return self._format("html")

    def _format(self, form: str) -> str:
        rows = [[printable(text, keeps="\n") for text in row] for row in self.rows]
        return tabulate.tabulate(rows, self.headers, form, colalign=self.align, disable_numparse=True)


def printable(text: str, keeps: str = "") -> str:
    r"""Write control characters of a text as Python does: they are seen, and no terminal obeys them.

    Args:
        keeps: those that stay as they are: line ends, of a text that has lines.

    Example:
        >>> print(printable("lstm\x1b[2J\n"))
        lstm\x1b[2J\n
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in keeps else one.encode("unicode_escape").decode() for one in text)
