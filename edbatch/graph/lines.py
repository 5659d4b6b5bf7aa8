"""Where in the user's code nodes were recorded; asked only under `eb.options(trace_lines=True)`."""

from __future__ import annotations

from collections.abc import Iterable

from edbatch.errors import users_frame


class LinedTypes(list[int]):
    """The column of types of a graph (see `Columns`) that notes with every entry the line of the user that it is from.

    All that records nodes extends this column, so that recording costs nothing more where lines are not asked for.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def extend(self, type_ids: Iterable[int], /) -> None:
        """Append several types, and as often the line that they come from."""
        added = list(type_ids)
        self.lines.extend([users_line()] * len(added))
        super().extend(added)


def users_line() -> str:
    """ "file:line" of what called the package."""
    frame = users_frame()
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
