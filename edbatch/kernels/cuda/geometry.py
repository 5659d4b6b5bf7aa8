"""How many blocks of how many threads."""

from __future__ import annotations

from numba import njit

THREADS = 256  # of a block
MOST_BLOCKS = 65535  # CUDA's limit for y; kernels go on from there by themselves


@njit(cache=True)
def threads_for(width: int) -> int:
    """Threads along a row of this width: a power of two from 32 to THREADS."""
    threads = 32
    while threads < min(width, THREADS):
        threads *= 2
    return threads


@njit(cache=True)
def parts(size: int, of: int) -> int:
    """How many parts of `of` cover `size`; at least one."""
    return max(1, -(-size // of))


@njit(cache=True)
def over_rows(n: int, width: int) -> tuple[int, int]:
    """Blocks of THREADS for n rows of a width, each entry a thread: (over rows, over columns)."""
    together = max(1, THREADS // threads_for(width)) if width >= 32 else THREADS // _covering(width)
    return min(parts(n, together), MOST_BLOCKS), min(parts(width, THREADS), MOST_BLOCKS)


@njit(cache=True)
def _covering(width: int) -> int:
    size = 1
    while size < width:
        size *= 2
    return size
