"""A GPU as a device: each call enqueues kernels, or products of cuBLAS, and returns; see `kernels.backend`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from importlib.resources import files
from threading import local
from typing import Any

import numpy as np

from edbatch.base.context_stack import contextmanager
from edbatch.compiling.array_table import HasTables
from edbatch.kernels.backend import Backend, Lists, ProgramTables
from edbatch.kernels.cpu.products import ONE_BITS, SINGLE_ONE_BITS
from edbatch.kernels.cuda import calls, cupy_driver, emitter, enqueue
from edbatch.kernels.cuda.arrays import CudaArrays
from edbatch.kernels.cuda.calls import PRECISIONS, check
from edbatch.kernels.cuda.cupy_driver import CuPyDriver, CuPyRecording
from edbatch.kernels.cuda.geometry import lanes_of_lists
from edbatch.kernels.cuda.recordings import Recordings
from edbatch.kernels.language import cuda
from edbatch.kernels.language.ir import Kernel
from edbatch.kernels.row_kernels import sum_lists
from edbatch.kernels.tables import INTEGER_BYTES, Matrix, Memory, Sizes
from edbatch.memory.plan.format import Plan

COMMON = ("common.cu",)  # of written and generated kernels
BY_HAND = (*COMMON, "rows.cu", "lists.cu")
#: Those that are written by hand, and where compiled code finds them.
KERNELS = {
    "gather": calls.GATHER, "add_all_float": calls.ADD_ALL_FLOAT, "add_all_double": calls.ADD_ALL_DOUBLE,
    "squares": calls.SQUARES,
}  # fmt: skip


def open_backend(number: int) -> Backend:
    """The backend of the GPU with this number.

    Raises:
        EdBatchError: there is no such GPU, or no CuPy; says how to install it.
    """
    return CudaBackend(cupy_driver.open_driver(number))


class CudaBackend(CudaArrays):
    """What computes on a GPU.

    Args:
        driver: of the GPU.
    """

    adds_in_groups = True
    block_bytes = 256 << 20  # of scratch memory

    def __init__(self, driver: CuPyDriver) -> None:
        super().__init__(driver)
        with driver.active():
            by_hand = driver.load(text_of(BY_HAND), list(KERNELS))
        self.recordings = Recordings(driver)
        self._made: dict[Kernel, int] = {}
        gpu = np.zeros(calls.WORDS, np.int64)
        known = {
            calls.LAUNCH: driver.launch,
            calls.GEMM: driver.gemm,
            calls.GEMM_STRIDED: driver.gemm_strided,
            calls.BLAS: driver.blas,
            calls.STREAM: driver.stream,
            calls.PROCESSORS: driver.processors,
            calls.COMPUTE: PRECISIONS["float32"],
            calls.ONE_FLOAT: SINGLE_ONE_BITS,
            calls.ONE_DOUBLE: ONE_BITS,
            **dict(zip(KERNELS.values(), by_hand, strict=True)),
        }
        for position, value in known.items():
            gpu[position] = value
        self._own = _ThreadsOwn(gpu)

    @property
    def _gpu(self) -> np.ndarray:
        return self._own.gpu

    def active(self, options: Any = None) -> AbstractContextManager[Any]:
        return self._driver.active() if options is None else self._running(options)

    @contextmanager
    def _running(self, options: Any) -> Iterator[None]:
        """Options hold for what this thread enqueues in the block."""
        own = self._own
        before = own.record, own.gpu[calls.COMPUTE]
        own.record, own.gpu[calls.COMPUTE] = options.record, PRECISIONS[options.precision]
        try:
            with self._driver.active():
                yield
        finally:
            own.record, own.gpu[calls.COMPUTE] = before

    def handles(self, wanted: Sequence[Kernel]) -> list[int]:
        """The handles of generated kernels; those that are new are compiled together."""
        new = [one for one in dict.fromkeys(wanted) if one not in self._made]
        if new:
            names = [f"kernel{at}" for at in range(len(new))]
            self._made |= zip(new, self._driver.load(source_of(dict(zip(names, new, strict=True))), names), strict=True)
        return [self._made[one] for one in wanted]

    def add_all(self, rows: Any, whole: Any) -> None:
        if not len(rows):
            return
        if not rows[0].flags.c_contiguous:
            rows = self._driver.xp.ascontiguousarray(rows)
        total = whole if whole.flags.c_contiguous else self._driver.xp.zeros(whole.shape, whole.dtype)
        stride = rows.strides[0] // rows.itemsize
        address = self._driver.address
        enqueue.add_all(self._gpu, rows.itemsize, len(rows), address(rows), stride, address(total), total.size)
        check(self._gpu)
        if total is not whole:
            whole += total

    def add_product(self, left: Any, right: Any, whole: Any, fresh: bool) -> None:
        xp, address = self._driver.xp, self._driver.address
        size = whole.itemsize
        if whole.strides[0] != size or whole.strides[1] < size * len(whole):
            whole += xp.matmul(left.T, right)
            return
        left, right = (x if _by_rows(x) else xp.ascontiguousarray(x) for x in (left, right))
        m, n = whole.shape
        a, b = (Matrix(address(x), x.strides[0] // size, 0) for x in (left, right))
        out = Matrix(address(whole), whole.strides[1] // size, 0)
        calls.add_product(self._gpu, size, Sizes(m, n, len(left)), a, b, out, fresh)
        check(self._gpu)

    def sum_equal(self, indices: np.ndarray, rows: Any) -> tuple[np.ndarray, Any]:
        xp = self._driver.xp
        if (indices[1:] > indices[:-1]).all():
            return np.array(indices, np.int64), xp.array(rows)
        rows = xp.ascontiguousarray(rows)
        found, to = np.unique(indices, return_inverse=True)
        order = np.argsort(to, kind="stable")
        ends = np.cumsum(np.bincount(to, minlength=len(found)))
        listed, _held = self._upload_list(np.concatenate([order, [0], ends]))
        offsets = listed + INTEGER_BYTES * len(order)
        total = xp.empty((len(found), *rows.shape[1:]), rows.dtype)
        (kernel,) = self.handles([sum_lists(rows.dtype.name)])
        width, address = total.size // len(found), self._driver.address
        given = [len(found), width, offsets, address(rows), rows.itemsize * width, listed]
        given += [address(total), total.itemsize * width, 0]
        lanes = lanes_of_lists(total.size, len(order) // len(found), self._driver.processors)
        enqueue.groups(self._gpu, kernel, total.size, lanes, np.array(given, np.int64))
        check(self._gpu)
        return found.astype(np.int64), total

    def call(self, kernel: int, n: int, size: int, given: np.ndarray) -> None:
        given[0] = n
        enqueue.each_entry(self._gpu, kernel, n, size, given)
        check(self._gpu)

    def squares(self, arrays: Sequence[Any]) -> Any:
        numbers = np.zeros((len(arrays) + enqueue.SOME, 3), np.int64)
        for at, x in enumerate(arrays):
            numbers[at] = self._driver.address(x), x.size, x.itemsize
        found = self._driver.empty(enqueue.PARTS * len(arrays), np.dtype(np.float64))
        enqueue.squares(self._gpu, numbers, len(arrays), self._driver.address(found))
        check(self._gpu)
        return found

    def run_batches(
        self, first: int, stop: int, plan: HasTables[Plan], lists: Lists, memory: HasTables[Memory],
        programs: ProgramTables, scratch: int,
    ) -> None:  # fmt: skip
        def enqueue_all(recording: CuPyRecording | None = None) -> None:
            gpu = self._gpu
            if recording is not None:
                gpu = gpu.copy()
                gpu[calls.STREAM], gpu[calls.BLAS] = recording.stream, recording.blas
            directory = programs.directory  # held: what is called may run graphs, for which it is replaced
            tables = plan.entries, memory.entries, directory.entries
            emitter.run_batches(gpu, first, stop, lists.indices, lists.integers, scratch, *tables)
            check(gpu)

        batches, operands, segments, *_ = plan.tables
        batches = batches[first:stop]
        operands = operands[batches["operand"][0] :]  # a graph's plan begins with what has run before
        if not self._own.record or not programs.runs_whole(batches):
            enqueue_all()
            return
        words = (lists.indices, lists.integers, scratch, programs.version, int(self._gpu[calls.COMPUTE]))
        key = hashlib.blake2b(repr(words).encode(), digest_size=16)
        for table in (batches, operands, segments, *memory.tables, programs.directory.tables.tasks):
            key.update(np.ascontiguousarray(table).data)
        saving = memory.tables.saving
        rows = np.bincount(batches["type"], batches["n"], len(saving)).astype(np.int64)
        after = saving["n"] + rows * (saving["address"] != 0)
        self.recordings.run(key.digest(), enqueue_all)
        saving["n"] = after


class _ThreadsOwn(local):
    """What each thread has for itself: options, and what went wrong (see `calls`)."""

    def __init__(self, gpu: np.ndarray) -> None:
        self.gpu = gpu.copy()
        self.record = True


def _by_rows(x: Any) -> bool:
    """Whether a matrix lies row by row, perhaps with gaps."""
    return bool(x.strides[1] == x.itemsize and x.strides[0] >= x.itemsize * x.shape[1])


@cache
def text_of(names: tuple[str, ...]) -> str:
    """CUDA C++ of this folder, one file after the other."""
    return "\n".join(files("edbatch.kernels.cuda").joinpath(name).read_text(encoding="utf-8") for name in names)


def source_of(kernels: Mapping[str, Kernel]) -> str:
    """CUDA C++ of generated kernels by name."""
    return text_of(COMMON) + "".join(cuda.source_of(kernel, name) for name, kernel in kernels.items())
