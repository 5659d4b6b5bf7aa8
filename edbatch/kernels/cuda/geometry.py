"""How many blocks of how many threads."""

from __future__ import annotations

from typing import NamedTuple

from edbatch.compiling.compiled import compiled

THREADS = 256  # of a block
MOST_BLOCKS = 65535  # CUDA's limit for y and z; kernels go on from there by themselves
MOST_BLOCKS_OF_X = 2**31 - 1
SECTOR = 8  # entries that memory gives at once, 32 bytes: fewer columns beside each other would waste some


class Grid(NamedTuple):
    """Blocks along x, y and z; and threads of one along x and y."""

    x: int
    y: int
    z: int
    along: int
    down: int


@compiled
def threads_for(width: int, least: int = 32) -> int:
    """Threads along a row of this width: a power of two from `least` to THREADS."""
    threads = least
    while threads < min(width, THREADS):
        threads *= 2
    return threads


@compiled
def parts(size: int, of: int) -> int:
    """How many parts of `of` cover `size`; at least one."""
    return max(1, -(-size // of))


@compiled
def spread(n: int, width: int) -> Grid:
    """For n rows of a width, each entry a thread: blocks of x (rows), y and z (columns), threads of x and y of a block.

    See `own_row` in common.cu.
    """
    along = threads_for(width, 1)
    columns = parts(width, along)
    z = parts(columns, MOST_BLOCKS)
    return Grid(parts(n, THREADS // along), parts(columns, z), z, along, THREADS // along)


@compiled
def over_rows(n: int, width: int) -> tuple[int, int]:
    """Blocks of THREADS for n rows of a width, each entry a thread: (over rows, over columns)."""
    together = THREADS // threads_for(width, 1)
    return min(parts(n, together), MOST_BLOCKS), min(parts(width, THREADS), MOST_BLOCKS)


@compiled
def lanes_of_lists(columns: int, length: int, processors: int) -> int:
    """How many threads read a column of a list.

    One, since neighbours in memory are neighbouring columns; or more, where lists are long and few (a loss is a sum of
    thousands of numbers).

    Args:
        columns: of all lists together.
        length: how many elements a list has.
    """
    if length <= 16 or columns >= THREADS * processors:
        return 1
    return 32 if length <= 1024 else THREADS


@compiled
def over_columns(width: int) -> tuple[int, int, int]:
    """For the sum of many rows of a width: blocks, threads of x (columns) and y (that share the rows of one).

    Blocks are as large as there are; narrow, unless there are columns enough for all processors.
    """
    along = min(threads_for(width, 1), SECTOR) if width < 2048 else 32
    return parts(width, along), along, 1024 // along
