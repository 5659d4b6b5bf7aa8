"""Windows: the ways to look at the rows of arenas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

# A view of a view of a view ... is resolved when planning; past this depth it is copied instead, so that a chain
# of thousands of views costs thousands of copies and not thousands of nested windows.
MAX_DEPTH = 8


@dataclass(frozen=True)
class Window:
    """The rows of an arena as a chain of views shows them: [rows, *shape].

    Args:
        arena: number of the arena.
        view: from the arena's array to the window's array.
        depth: number of views in the chain.
        column, width: where a row's entries lie in the arena's row; width 0 when they are not contiguous.
        entries: of one row as seen.
    """

    arena: int
    view: Callable[[Any], Any]
    depth: int
    column: int
    width: int
    entries: int


def contiguous_columns(whole: Any, part: Any) -> tuple[int, int] | None:
    """(first column, width) of `part` in the rows of `whole`, (0, 0) if not contiguous, None if it is a copy."""
    if not np.may_share_memory(whole, part):
        return None
    if not part[0].flags.c_contiguous or part.strides[0] != whole.strides[0]:
        return 0, 0
    start = part.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    return start // whole.itemsize, part[0].size


class Windows:
    """Arena layouts (a shape and dtype each) and the windows on them, numbered.

    It holds no memory: graphs of one model share it, each with `Arenas` of its own.
    """

    def __init__(self) -> None:
        self.layouts: list[tuple[tuple[int, ...], np.dtype]] = []
        self.windows: list[Window] = []
        self._plain: dict[tuple[tuple[int, ...], np.dtype], int] = {}

    def plain(self, shape: tuple[int, ...], dtype: np.dtype) -> int:
        """Number of the window that shows the arena of this layout as it is."""
        found = self._plain.get((shape, dtype))
        if found is None:
            self.layouts.append((shape, dtype))
            width = int(np.prod(shape, dtype=np.int64))
            self.windows.append(Window(len(self.layouts) - 1, lambda array: array, 0, 0, width, width))
            found = self._plain[shape, dtype] = len(self.windows) - 1
        return found

    def look(self, window: int, view: Callable[[Any], Any]) -> int:
        """Number of a new window: `view` of another. -1 if that takes a copy or the chain is too long."""
        parent = self.windows[window]
        shape, dtype = self.layouts[parent.arena]
        whole = np.empty((2, *shape), dtype)
        seen = view(parent.view(whole))
        columns = contiguous_columns(whole, seen)
        if columns is None or parent.depth == MAX_DEPTH:
            return -1
        self.windows.append(
            Window(parent.arena, lambda array: view(parent.view(array)), parent.depth + 1, *columns, seen[0].size)
        )
        return len(self.windows) - 1
