"""How many blocks of how many threads."""

from __future__ import annotations

from numba import njit

THREADS = 256  # of a block
MOST_BLOCKS = 65535  # CUDA's limit for y and z; kernels go on from there by themselves
MOST_BLOCKS_OF_X = 2**31 - 1


@njit(cache=True)
def threads_for(width: int, least: int = 32) -> int:
    """Threads along a row of this width: a power of two from `least` to THREADS."""
    threads = least
    while threads < min(width, THREADS):
        threads *= 2
    return threads


@njit(cache=True)
def parts(size: int, of: int) -> int:
    """How many parts of `of` cover `size`; at least one."""
    return max(1, -(-size // of))


@njit(cache=True)
def spread(n: int, width: int) -> tuple[int, int, int, int, int]:
    """For n rows of a width, each entry a thread: blocks of x (rows), y and z (columns), threads of x and y of a block.

    See `own_row` in common.cu.
    """
    along = threads_for(width, 1)
    columns = parts(width, along)
    z = parts(columns, MOST_BLOCKS)
    return parts(n, THREADS // along), parts(columns, z), z, along, THREADS // along


@njit(cache=True)
def over_rows(n: int, width: int) -> tuple[int, int]:
    """Blocks of THREADS for n rows of a width, each entry a thread: (over rows, over columns)."""
    together = THREADS // threads_for(width, 1)
    return min(parts(n, together), MOST_BLOCKS), min(parts(width, THREADS), MOST_BLOCKS)
