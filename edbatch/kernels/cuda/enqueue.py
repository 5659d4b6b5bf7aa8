"""Single kernels enqueued from compiled code: how many blocks of how many threads, and with which parameters."""

from __future__ import annotations

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.kernels.cpu.partitions import WORD
from edbatch.kernels.cpu.pointers import int64_address
from edbatch.kernels.cuda.calls import (
    ADD_ALL_DOUBLE,
    ADD_ALL_FLOAT,
    GATHER,
    PROCESSORS,
    SQUARES,
    launch,
    launch_given,
)
from edbatch.kernels.cuda.geometry import (
    MOST_BLOCKS_OF_X,
    THREADS,
    Grid,
    over_columns,
    over_rows,
    parts,
    spread,
)
from edbatch.kernels.interpreter import MOVE, MOVES
from edbatch.kernels.tables import Listed

BLOCKS_PER_PROCESSOR = 16
SOME, PARTS = 16, 32  # arrays whose squares a launch adds, and in how many parts each


@compiled
def gather(gpu: np.ndarray, moves: np.ndarray, count: int) -> None:
    """Enqueue the first `count` of moves [at least MOVES more, 8], which are passed by value; see `rows.cu`."""
    for first in range(0, count, MOVES):
        some = min(MOVES, count - first)
        words, down, across = 0, 1, 1
        for at in range(first, first + some):
            n, width = moves[at, 4], moves[at, 7]
            words = max(words, n * width)
            x, z = over_rows(n, parts(width, 4))  # a thread moves four words at a time
            down, across = max(down, x), max(across, z)
        if words == 0:
            continue
        most = BLOCKS_PER_PROCESSOR * gpu[PROCESSORS]
        across = min(across, most)
        down = min(down, parts(most, across))
        given = np.empty(1, np.int64)
        given[0] = int64_address(moves) + 8 * MOVE * first
        launch_given(gpu, gpu[GATHER], Grid(down, some, across, THREADS, 1), given)
        given[0] = moves[0, 0]  # or both would be freed before the call: Numba does not know that it reads them


@compiled
def note(gpu: np.ndarray, moves: np.ndarray, at: int, source: Listed, target: Listed, n: int) -> int:
    """Note a move of n rows of the target's width for `gather`; returns the number of moves."""
    read, written = source.rows, target.rows
    moves[at, 0], moves[at, 1], moves[at, 2], moves[at, 3] = read.address, read.stride // WORD, source.list, target.list
    moves[at, 4], moves[at, 5], moves[at, 6] = n, written.address, written.stride // WORD
    moves[at, 7] = written.width // WORD
    return at + 1


@compiled
def add_all(gpu: np.ndarray, itemsize: int, n: int, source: int, stride: int, target: int, width: int) -> None:
    """Enqueue the sum of rows; see `lists.cu`."""
    kernel = gpu[ADD_ALL_FLOAT] if itemsize == 4 else gpu[ADD_ALL_DOUBLE]
    values = np.array([n, source, stride, target, width], np.int64)
    x, along, down = over_columns(width)
    launch(gpu, kernel, Grid(x, 1, 1, along, down), values, len(values))


@compiled
def squares(gpu: np.ndarray, numbers: np.ndarray, count: int, sums: int) -> None:
    """Enqueue sums of squares of the first `count` of arrays [at least SOME more, 3], which are passed by value.

    Args:
        numbers: of each array, its address, size and bytes of an entry.
        sums: the address of [count, PARTS], float64; see `lists.cu`.
    """
    for first in range(0, count, SOME):
        given, target = np.empty(2, np.int64), np.empty(1, np.int64)
        target[0] = sums + 8 * PARTS * first
        given[0], given[1] = int64_address(numbers) + 8 * 3 * first, int64_address(target)
        launch_given(gpu, gpu[SQUARES], Grid(PARTS, min(SOME, count - first), 1, THREADS, 1), given)
        given[0] = numbers[0, 0] + target[0]  # or all would be freed before the call: Numba does not know what it reads


@compiled
def each_entry(gpu: np.ndarray, kernel: int, n: int, d: int, values: np.ndarray) -> None:
    """Enqueue a kernel that computes each of d entries of n rows by itself; `values`: n, then what it is given."""
    if n > 0:
        launch(gpu, kernel, spread(n, d), values, 2)


@compiled
def groups(gpu: np.ndarray, kernel: int, n: int, lanes: int, values: np.ndarray) -> None:
    """Enqueue a kernel that computes n groups, each by so many threads, of one y; `values` as of `each_entry`."""
    y = THREADS // lanes
    launch(gpu, kernel, Grid(min(parts(n, y), MOST_BLOCKS_OF_X), 1, 1, lanes, y), values, 2)
