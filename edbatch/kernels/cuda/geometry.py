"""How many blocks of how many threads."""

from __future__ import annotations

from numba import njit

THREADS = 256
MOST_BLOCKS_Y = 65535  # CUDA's limit


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
