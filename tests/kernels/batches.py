"""Batches made by hand, run by the compiled loops of any backend."""

import itertools
from functools import cache, partial
from types import SimpleNamespace

import numpy as np

from edbatch.compiling.directory import Directory
from edbatch.kernels.program import (
    ARGUMENT_OF,
    EXTENT,
    POSITION,
    SLOT,
    TASK,
    Argument,
    Extent,
    KernelStep,
    Move,
    Over,
    Position,
    Slot,
    Storage,
    Task,
    step_table,
)
from edbatch.kernels.row_kernels import adding_rows, copy_rows, sum_lists
from edbatch.kernels.tables import Memory, Programs
from edbatch.memory.plan.addresses import COLUMNS, KEPT, ROWS, SCATTERED, Columns, Kept, Rows
from edbatch.memory.plan.format import (
    BATCH,
    GATHER,
    GATHER_MANY,
    OPERAND,
    SEGMENT,
    SHARED,
    SLICE,
    STRIDED,
    Batch,
    Operand,
    Plan,
    Segment,
)
from edbatch.runtime.compile.link import shape_of
from tests.kernels.softmax import softmax

versions = itertools.count(-1, -1)  # none of a table of types


def table(rows, width, dtype=np.int32):
    return np.array(rows, dtype).reshape(-1, width)


FLOAT32 = np.dtype(np.float32)


def no_scattered():
    """Of a `Memory`, all windows of which have rows whose entries lie side by side."""
    return np.zeros(0, SCATTERED), np.zeros(0, np.int64)


def adding(backend, dtype):
    return adding_rows(dtype, backend)


def running(backend, dtype):
    return Task(0)


def programs(backend, tasks, width=0, block=64, dtype=FLOAT32):
    """No programs; or, of a width, number 0: the result is the argument, and its softmax is kept beside it.

    Args:
        tasks: per type, what makes its task of a backend and a dtype.
    """
    none = not width
    slots = [] if none else [Slot(Storage.ARGUMENT, 0, 0, width), Slot(Storage.RESULT, 0, 0, 0)]
    arguments = [] if none else [Argument(0, width, Move.IF_SCATTERED)]
    steps = (
        [] if none else [KernelStep(1, 5, 2, 1, 0, 0, 1, width, 0, 0), KernelStep(0, 0, 2, 1, 2, 0, 1, width, 1, 32)]
    )
    extents = [] if none else [Extent(0, 2, 0, 1, 0, 2, 0, 0, 0, block, dtype.itemsize)]
    places = [Position(0, 0), Position(1, 0), Position(0, width), Position(0, 0), Position(0, width)]
    places += [Position(0, 0), Position(1, 0), Position(0, width)]
    kernels = np.array(backend.handles([softmax(False, dtype.name), copy_rows(dtype.name)]))
    addresses = np.zeros(0, np.int64)
    tasks = np.array([make(backend, dtype) for make in tasks], TASK)
    tables = Programs(
        tasks, np.array(extents, EXTENT), np.array(slots, SLOT), np.array(arguments, ARGUMENT_OF),
        step_table(steps), np.array(places, POSITION), kernels, addresses,
    )  # fmt: skip
    return SimpleNamespace(
        directory=Directory(tables),
        version=next(versions),
        runs_whole=lambda batches: bool((batches["n"] <= block).all()),
    )


def summing(backend, width, dtype):
    """Program 0: the sum of the rows of each list, of a width."""
    kernel = sum_lists(dtype.name)
    slots = [Slot(Storage.ARGUMENT, 0, 0, width), Slot(Storage.RESULT, 0, 0, 0)]
    places = [Position(0, 0), Position(1, 0), Position(0, width), Position(-1, 0)]
    step = KernelStep(0, 0, 2, 2, 0, 0, *shape_of(kernel, [width, 1]), Over.LISTS)
    extent = Extent(0, 2, 0, 1, 0, 1, 0, 0, 0, 64, dtype.itemsize, 0)
    tables = Programs(
        np.array([Task(0)], TASK), np.array([extent], EXTENT), np.array(slots, SLOT),
        np.array([Argument(0, width, Move.UNLESS_FOLLOWED, 1)], ARGUMENT_OF), step_table([step]),
        np.array(places, POSITION), np.array(backend.handles([kernel])), np.zeros(0, np.int64),
    )  # fmt: skip
    return SimpleNamespace(directory=Directory(tables), version=next(versions), runs_whole=lambda batches: True)


def made_once(**form):
    """What makes `programs` of a backend, always the same."""
    return cache(partial(programs, **form))


def run(backend, arrays, windows, batches, operands, segments, indices, results, programs, kept=None):
    """What batches leave in copies of the arenas `arrays` [rows, width], of one dtype.

    Args:
        programs: makes those of a backend.
        kept: per type the arena that its results are kept in, or None.
    """
    there, itemsize = [backend.from_host(array.copy(), "C") for array in arrays], arrays[0].itemsize
    arenas = np.array([Rows(backend.address(x), itemsize * x.shape[1]) for x in there], ROWS)
    windows = [Columns(arena, itemsize * column, itemsize * width) for arena, column, width in windows]
    keeping = [
        Kept(0, 0, 0) if at is None else Kept(*arenas[at].tolist()[:2], 0) for at in kept or [None] * len(results)
    ]
    keeping = np.array(keeping, KEPT)
    plan = Directory(
        Plan(
            np.array(batches, BATCH), np.array(operands, OPERAND), np.array(segments, SEGMENT),
            np.array(indices, np.int32),
        )
    )  # fmt: skip
    programs = programs(backend)
    scratch = backend.empty(4096, np.dtype(np.float64))
    memory = Memory(np.array(windows, COLUMNS), arenas, np.array(results, np.int32), keeping, *no_scattered())
    backend.run_batches(
        0, len(batches), plan, backend.indices(plan), Directory(memory), programs, backend.address(scratch)
    )
    return [np.array(backend.to_host(x)) for x in there], keeping["n"].tolist()


def rows_of(operand, segments, indices):
    """The rows of an operand, in order: (window, row)."""
    access, window, start, distance, pieces, count = operand
    if access == GATHER:
        return [(window, indices[start + i]) for i in range(count)]
    if access == GATHER_MANY:
        found = {}
        for seen, rows, positions, n in segments[start : start + pieces]:
            found |= {indices[positions + i]: (seen, indices[rows + i]) for i in range(n)}
        return [found[i] for i in range(count)]
    return [(window, start + i * {SLICE: 1, SHARED: 0, STRIDED: distance}[access]) for i in range(count)]


def operand_of(access, window, n, lists, random, rows):
    """An operand of a kind, of n rows among `rows`; its list is put into `lists`."""
    if access == GATHER:
        lists += random.integers(0, rows, n).tolist()
        return Operand(GATHER, window, len(lists) - n, 0, 0, n)
    distance = {SLICE: 1, SHARED: 0, STRIDED: 2}[access]
    return Operand(access, window, int(random.integers(0, rows - n * distance)), distance, 0, n)


def sums(seed, access, dtype):
    """Sums over lists of rows of one window, or of two, of arenas of different widths: what `run` takes, and returns.

    The result goes to the columns of a third arena.
    """
    random = np.random.default_rng(seed)
    arrays = [random.normal(size=shape).astype(dtype) for shape in ((30, 5), (30, 8), (9, 3))]
    windows = [(0, 1, 3), (1, 4, 3), (2, 0, 3)]
    lengths = random.integers(0, 4, 4)
    offsets = np.append(0, np.cumsum(lengths)).tolist()
    total, lists, segments = offsets[-1], [], []
    if access == GATHER_MANY:
        of = random.integers(0, 2, total)
        for window in (0, 1):
            positions = np.flatnonzero(of == window).tolist()
            rows = random.integers(0, 30, len(positions)).tolist()
            segments.append(Segment(window, len(lists), len(lists) + len(rows), len(rows)))
            lists += rows + positions
        operand = Operand(GATHER_MANY, -1, 0, 0, 2, total)
    else:
        operand = operand_of(access, int(random.integers(2)), total, lists, random, 30)
    batch = Batch(0, 2, 4, 0, 0, len(lists))
    want = arrays[2].astype(np.float64)
    listed = rows_of(operand, segments, lists)
    for i in range(4):
        want[2 + i] = 0
        for window, row in listed[offsets[i] : offsets[i + 1]]:
            arena, column, width = windows[window]
            want[2 + i] += arrays[arena][row, column : column + width]
    given = (
        arrays,
        windows,
        [batch],
        [operand],
        segments,
        lists + offsets,
        [2],
        cache(partial(summing, width=3, dtype=dtype)),
    )
    return given, [*arrays[:2], want]


def additions(seed, access, listed, dtype):
    """Rows that are added to an operand, in the order of a list or as they are: what `run` takes, and returns."""
    random = np.random.default_rng(seed)
    arrays = [random.normal(size=shape).astype(dtype) for shape in ((20, 5), (12, 7))]
    windows, n, lists = [(0, 2, 3), (1, 1, 3)], 6, []
    operand = operand_of(access, 0, n, lists, random, 20)
    places = random.integers(0, n, n).tolist() if listed else list(range(n))
    batch, rows = Batch(0, 0, n, 0, 0, len(lists) if listed else -1), Operand(SLICE, 1, 4, 1, 0, n)
    want = arrays[0].copy()
    for i, (_, row) in enumerate(rows_of(operand, [], lists)):
        want[row, 2:5] += arrays[1][4 + places[i], 1:4]
    made = made_once(tasks=(adding,), dtype=dtype)
    return (arrays, windows, [batch], [operand, rows], [], lists + places, [0], made), [want, arrays[1]]


def kept(seed, block, dtype):
    """Two batches of a type whose results are kept with what is saved, between others of one that keeps nothing."""
    random = np.random.default_rng(seed)
    arrays = [random.normal(size=shape).astype(dtype) for shape in ((20, 3), (30, 6), (12, 6), (12, 6))]
    windows, lists = [(0, 0, 3), (1, 0, 3), (2, 0, 3)], random.integers(0, 20, 4).tolist()
    operands = [Operand(SLICE, 0, 3, 1, 0, 5), Operand(GATHER, 0, 0, 0, 0, 4), Operand(SHARED, 0, 7, 0, 0, 2)]
    batches = [Batch(0, 2, 5, 0, 0, -1), Batch(1, 0, 2, 2, 0, -1), Batch(0, 7, 4, 1, 0, -1)]
    want = [array.astype(np.float64) for array in arrays]
    x = {at: want[0][[row for _, row in rows_of(operand, [], lists)]] for at, operand in enumerate(operands)}
    parts = {at: np.exp(rows) / np.exp(rows).sum(axis=1, keepdims=True) for at, rows in x.items()}
    want[1][2:7, :3], want[1][7:11, :3] = x[0], x[1]
    want[2][:2] = np.hstack([x[2], parts[2]])  # kept nowhere: its rows have all that it computes
    want[3][:5], want[3][5:9] = np.hstack([x[0], parts[0]]), np.hstack([x[1], parts[1]])
    return (
        arrays,
        windows,
        batches,
        operands,
        [],
        lists,
        [1, 2],
        made_once(tasks=(running, running), width=3, block=block, dtype=dtype),
        [3, None],
    ), want
