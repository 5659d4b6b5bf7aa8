"""Text that others chose, on a terminal or in a log."""

from __future__ import annotations


def printable(text: str, keeps: str = "") -> str:
    r"""Text whose control characters are written as Python writes them: they are seen, and no terminal obeys them.

    Args:
        keeps: those that stay as they are: line ends, of a text that has lines.

    Example:
        >>> print(printable("lstm\x1b[2J\n"))
        lstm\x1b[2J\n
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in keeps else one.encode("unicode_escape").decode() for one in text)
