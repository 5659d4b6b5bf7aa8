"""What the runtime calls to move, add and compute rows, on a GPU: each call enqueues kernels and returns."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import local
from typing import Any

import numpy as np

from edbatch.kernels.call import Call
from edbatch.kernels.cpu.products import Matrix, Sizes
from edbatch.kernels.cuda import calls, enqueue, launch, row_ops, row_source
from edbatch.kernels.cuda.calls import PRECISIONS, Gpu, check
from edbatch.kernels.cuda.driver import Driver, Recording
from edbatch.kernels.cuda.geometry import THREADS, over_rows, parts
from edbatch.kernels.cuda.indices import IndexLists, Indices
from edbatch.kernels.cuda.recordings import Recordings
from edbatch.kernels.cuda.source import common
from edbatch.kernels.cuda.source import rows as rows_source
from edbatch.kernels.groups import Groups, group
from edbatch.kernels.language import cuda
from edbatch.kernels.language.analysis import analysis_of
from edbatch.kernels.language.ir import Kernel
from edbatch.kernels.list_kernels import reduce_lists
from edbatch.kernels.program import ADD_ROWS, LISTS, Each, Task
from edbatch.kernels.tables import Batches, Integers, Memory, Programs, Rows, Slots

_ON_ROWS = (
    "add_rows", "add_grouped", "add_all", "error_function",
)  # fmt: skip
KERNELS = ("gather", *(f"{name}_{dtype}" for name in _ON_ROWS for dtype in ("float", "double")))


class CudaLoops:
    """The same functions as `kernels.cpu.loops`.

    Args:
        driver: of the GPU.
    """

    puts_lists_together = True
    adds_in_groups = True
    computes = staticmethod(row_ops.computes)
    work_of = staticmethod(row_source.work_of)

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._kernels = dict(zip(KERNELS, driver.load(rows_source(), KERNELS), strict=True))
        self.recordings = Recordings(driver)
        self._lists = IndexLists(driver)
        self._made: dict[Kernel | Call, int] = {}
        gpu = np.zeros(len(Gpu), np.int64)
        known = {
            Gpu.LAUNCH: driver.launch,
            Gpu.GEMM: driver.gemm,
            Gpu.GEMM_STRIDED: driver.gemm_strided,
            Gpu.BLAS: driver.blas,
            Gpu.STREAM: driver.stream,
            Gpu.PROCESSORS: driver.processors,
            Gpu.COMPUTE: PRECISIONS["float32"],
            Gpu.GATHER: self._kernels["gather"],
        }
        for position, value in known.items():
            gpu[position] = value
        self._own = _ThreadsOwn(gpu)

    @property
    def _gpu(self) -> np.ndarray:
        return self._own.gpu

    def configure(self, record: bool, precision: str) -> None:
        """See `CudaBackend.configure`."""
        self._own.record = record
        self._gpu[Gpu.COMPUTE] = PRECISIONS[precision]

    def upload(self, host: np.ndarray) -> Indices:
        """A list of integers for the device."""
        return self._lists.upload(host)

    def upload_plan(self, host: np.ndarray) -> Indices:
        """The index buffer of a plan: slices of it may not outlive it."""
        return self._lists.upload_plan(host)

    def handles(self, wanted: Sequence[Kernel | Call]) -> list[int]:
        """The handles of generated kernels; those that are new are compiled together."""
        new = [one for one in dict.fromkeys(wanted) if one not in self._made]
        if new:
            names = [f"kernel{at}" for at in range(len(new))]
            self._made |= zip(new, self._driver.load(source_of(dict(zip(names, new, strict=True))), names), strict=True)
        return [self._made[one] for one in wanted]

    def of_lists(self, make: Callable[[int], Kernel]) -> Task:
        """See `kernels.cpu.loops.of_lists`."""
        kernel = make(32)
        (handle,) = self.handles([kernel])
        each = Each.COLUMN if analysis_of(kernel).grouped else Each.ELEMENT if kernel.places[-1].elements else Each.ROW
        return Task(LISTS, np.dtype(kernel.dtype).itemsize, handle, operands=len(kernel.places) - 1, each=each)

    def compute_lists(self, task: Task, offsets: Any, operands: Sequence[Any], out: Any) -> None:
        """See `kernels.cpu.loops.compute_lists`."""
        xp, address = self._driver.xp, self._driver.address
        target = xp.ascontiguousarray(out)
        total, width, stride = len(operands[0]), target.size // len(target), target.nbytes // len(target)
        places = [word for rows in (*operands, target) for word in (address(rows), stride, 0)]
        values = np.array([len(offsets) - 1, width, address(offsets), *places, 0], np.int64)
        enqueue.lists(self._gpu, task.kernel, task.each, total, values)
        check(self._gpu)
        if target is not out:
            out[...] = target

    def adding(self, dtype: np.dtype) -> Task:
        """See `kernels.cpu.loops.adding`."""
        kernels = (self._kernels[f"{name}_{_name(dtype)}"] for name in ("add_rows", "add_all", "add_grouped"))
        return Task(ADD_ROWS, dtype.itemsize, *kernels)

    def error_function(self, x: Any, out: Any, complement: bool) -> None:
        """out = erf(x), or 1 - erf(x) without cancellation; both contiguous."""
        n, address = out.size, self._driver.address
        values = [n, address(x), address(out), int(complement)]
        self._launch(f"error_function_{_name(out.dtype)}", parts(n, THREADS), 1, THREADS, 1, values)

    def copy_rows(self, n: int, source: int, source_stride: int, target: int, target_stride: int, width: int) -> None:
        """See `kernels.cpu.gather.copy_rows`."""
        self._move(Rows(source, source_stride, width), 0, 0, n, target, target_stride)

    def gather_rows(
        self, n: int, source: int, source_stride: int, rows: Indices, begin: int, target: int, target_stride: int,
        width: int,
    ) -> None:  # fmt: skip
        """See `kernels.cpu.gather.gather_rows`."""
        self._move(Rows(source, source_stride, width), rows.at(begin), 0, n, target, target_stride)

    def gather_rows_to(
        self, n: int, source: int, source_stride: int, rows: Indices, begin: int, to: int, target: int,
        target_stride: int, width: int,
    ) -> None:  # fmt: skip
        """See `kernels.cpu.gather.gather_rows_to`."""
        self._move(Rows(source, source_stride, width), rows.at(begin), rows.at(to), n, target, target_stride)

    def add_rows(
        self, source: Any, source_begin: int, source_stride: int, n: int, target: Any, target_begin: int,
        target_stride: int, width: int,
    ) -> None:  # fmt: skip
        """See `kernels.cpu.scatter.add_rows`."""
        begin = self._entry(source, source_begin), self._entry(target, target_begin)
        if target_stride == 0:
            self._add_all(n, begin[0], source_stride, begin[1], width, source.dtype)
            return
        values = [n, begin[0], source_stride, 0, 0, begin[1], target_stride, width]
        self._over_rows("add_rows", source.dtype, n, width, values)

    def add_rows_at(
        self, source: Any, source_begin: int, source_stride: int, indices: Indices, positions: int, rows: int, n: int,
        target: Any, target_column: int, target_width: int, width: int,
    ) -> None:  # fmt: skip
        """See `kernels.cpu.scatter.add_rows_at`: in the order of the rows, whatever the order of threads."""
        begin, to = self._entry(source, source_begin), self._entry(target, target_column)
        groups = group(indices.host[rows : rows + n])
        if groups is None:
            at, listed = indices.at(positions), indices.at(rows)
            values = [n, begin, source_stride, at, listed, to, target_width, width]
            self._over_rows("add_rows", source.dtype, n, width, values)
            return
        members = groups.members if positions < 0 else indices.host[positions : positions + n][groups.members]
        self._add_groups(groups, members, begin, source_stride, to, target_width, width, source.dtype)

    def add_at(self, array: Any, rows: np.ndarray, values: Any) -> None:
        """See `kernels.cpu.loops.add_at`; in one order, whatever the order of threads."""
        if group(rows) is not None:
            rows, values = self.sum_equal(rows, values)
        array[self.upload(rows)[:]] += values

    def add_all(self, rows: Any, whole: Any) -> None:
        """See `kernels.cpu.loops.add_all`."""
        if not len(rows):
            return
        if not rows[0].flags.c_contiguous:
            rows = self._driver.xp.ascontiguousarray(rows)
        total = whole if whole.flags.c_contiguous else self._driver.xp.zeros(whole.shape, whole.dtype)
        stride = rows.strides[0] // rows.itemsize
        address = self._driver.address
        self._add_all(len(rows), address(rows), stride, address(total), total.size, total.dtype)
        if total is not whole:
            whole += total

    def add_product(self, left: Any, right: Any, whole: Any, fresh: bool) -> None:
        """See `kernels.cpu.loops.add_product`."""
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
        """See `kernels.cpu.loops.sum_equal`."""
        xp = self._driver.xp
        if (indices[1:] > indices[:-1]).all():
            return np.array(indices, np.int64), xp.array(rows)
        rows = xp.ascontiguousarray(rows)
        found, to = np.unique(indices, return_inverse=True)
        order = np.argsort(to, kind="stable")
        ends = np.cumsum(np.bincount(to, minlength=len(found)))
        lists = self.upload(np.concatenate([order, [0], ends]))
        total = xp.empty((len(found), *rows.shape[1:]), rows.dtype)
        task = self.of_lists(partial(reduce_lists, "sum_list", rows.dtype.name))
        width, address = total.size // len(found), self._driver.address
        given = [len(found), width, lists.at(len(order)), address(rows), rows.itemsize * width, lists.at(0)]
        given += [address(total), total.itemsize * width, 0, 0]
        enqueue.lists(self._gpu, task.kernel, task.each, len(order), np.array(given, np.int64))
        check(self._gpu)
        return found.astype(np.int64), total

    def prepared(self, kernel: Kernel, size: int, given: np.ndarray) -> Callable[[int], None]:
        """See `kernels.cpu.loops.prepared`."""
        (handle,) = self.handles([kernel])

        def run(n: int) -> None:
            enqueue.each_entry(self._gpu, handle, n, size, np.append(n, given))
            check(self._gpu)

        return run

    def run_steps(self, programs: Programs, first: int, slots: Slots, integers: Integers, m: int) -> int:
        """See `kernels.cpu.loops.run_steps`."""
        by_address = integers._replace(indices=self._driver.address(integers.indices))
        at: int = launch.enqueue_steps(self._gpu, programs, 0, first, slots, by_address, m)
        check(self._gpu)
        return at

    def run_batches(
        self, first: int, stop: int, plan: Any, indices: Indices, memory: Memory, programs: Any, scratch: int
    ) -> int:
        """See `kernels.cpu.loops.run_batches`."""
        batches = Batches(plan.batches, plan.operands, plan.segments)
        end = stop

        def enqueue_all(recording: Recording | None = None) -> bool:
            nonlocal end
            gpu = self._gpu
            if recording is not None:
                gpu = gpu.copy()
                gpu[Gpu.STREAM], gpu[Gpu.BLAS] = recording.stream, recording.blas
            end = launch.enqueue_batches(
                gpu, first, stop, indices.host, indices.address, scratch, *batches, *memory, *programs.tables
            )  # fmt: skip
            check(gpu)
            return end == stop

        if not self._own.record or not programs.runs_whole(plan.batches[first:stop]):
            enqueue_all()
            return end
        words = (first, stop, indices.address, scratch, programs.version, int(self._gpu[Gpu.COMPUTE]))
        key = hashlib.blake2b(repr(words).encode(), digest_size=16)
        for table in (*batches, *memory, programs.tables.tasks):
            key.update(np.ascontiguousarray(table).data)
        kept = memory.kept
        rows = np.bincount(plan.batches["type"][first:stop], plan.batches["n"][first:stop], len(kept)).astype(np.int64)
        after = kept["n"] + rows * (kept["address"] != 0)
        self.recordings.run(key.digest(), enqueue_all)
        if end == stop:
            kept["n"] = after
        return end

    def _entry(self, array: Any, entry: int) -> int:
        return self._driver.address(array) + int(array.itemsize) * entry

    def _move(self, source: Rows, *where: int) -> None:
        moves = np.empty((enqueue.MOVES, enqueue.MOVE), np.int64)
        enqueue.move(moves, 0, source, *where)
        enqueue.gather(self._gpu, moves, 1)
        check(self._gpu)

    def _over_rows(self, name: str, dtype: np.dtype, n: int, width: int, values: list[int]) -> None:
        self._launch(f"{name}_{_name(dtype)}", *over_rows(n, width), THREADS, 1, values)

    def _add_groups(
        self, groups: Groups, members: np.ndarray, source: int, source_stride: int, to: int, stride: int, width: int,
        dtype: np.dtype,
    ) -> None:  # fmt: skip
        n = len(groups.rows)
        lists = self.upload(np.concatenate([groups.offsets, members, groups.rows]))
        values = [
            n,
            lists.at(0),
            lists.at(n + 1),
            lists.at(n + 1 + len(members)),
            source,
            source_stride,
            to,
            stride,
            width,
        ]
        self._over_rows("add_grouped", dtype, n, width, values)

    def _add_all(self, n: int, source: int, stride: int, target: int, width: int, dtype: np.dtype) -> None:
        enqueue.add_all(self._gpu, self._kernels[f"add_all_{_name(dtype)}"], n, source, stride, target, width)
        check(self._gpu)

    def _launch(self, name: str, gx: int, gy: int, bx: int, by: int, values: list[int]) -> None:
        calls.launch(self._gpu, self._kernels[name], gx, gy, 1, bx, by, np.array(values, np.int64), len(values))
        check(self._gpu)


class _ThreadsOwn(local):
    """What each thread has for itself: options, and what went wrong (see `calls.Gpu`)."""

    def __init__(self, gpu: np.ndarray) -> None:
        self.gpu = gpu.copy()
        self.record = True


def _by_rows(x: Any) -> bool:
    """Whether a matrix lies row by row, perhaps with gaps."""
    return bool(x.strides[1] == x.itemsize and x.strides[0] >= x.itemsize * x.shape[1])


def source_of(kernels: Mapping[str, Kernel | Call]) -> str:
    """CUDA C++ of generated kernels by name."""
    texts = [
        cuda.source_of(x, name) if isinstance(x, Kernel) else row_source.source_of(x, name)
        for name, x in kernels.items()
    ]
    return common() + "".join(texts)


def _name(dtype: np.dtype) -> str:
    return "float" if dtype == np.float32 else "double"
