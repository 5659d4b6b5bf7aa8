"""What a CPU does with the steps of programs: it calls BLAS and kernels, at once; see `kernels.interpreter`.

Here, and nowhere above, a step is cut into parts for several threads. What is too small for that is done as it is.
"""

from __future__ import annotations

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.kernels.cpu.partitions import (
    KERNEL,
    LEAST_BYTES,
    LEAST_ENTRIES,
    MOVE,
    NONE,
    PRODUCT,
    Job,
    move_rows,
    product_parts,
    row_parts,
    scratch_of_parts,
)
from edbatch.kernels.cpu.pointers import call_kernel, int64_address
from edbatch.kernels.cpu.products import Gemm, multiply, multiply_each
from edbatch.kernels.cpu.shared_jobs import SMALL, share
from edbatch.kernels.interpreter import Emitter, interpreter
from edbatch.kernels.program import OVER_CALLS, OVER_LISTS
from edbatch.kernels.tables import (
    Integers,
    Listed,
    Matrix,
    Rows,
    Sizes,
    Sources,
    adding,
    at_index,
    operand_rows,
)


@compiled(small=True, error_model="numpy")
def multiply_rows(device: np.ndarray, itemsize: int, sizes: Sizes, x: Matrix, w: Matrix, out: Matrix, add: int) -> None:
    """See `Emitter`; a large product is cut."""
    parts, small = product_parts(sizes, itemsize), device[SMALL]
    if parts == 1:
        multiply(Gemm(device[itemsize // 8], itemsize, small), sizes, x, w, out, add)
    else:
        share(device, Job(PRODUCT, parts, device[itemsize // 8], itemsize, sizes, x, w, out, add, small))


@compiled(small=True, error_model="numpy", inline="always")
def _kernel(device: np.ndarray, kernel: int, step: np.void, given: np.ndarray, integers: Integers) -> None:
    n, elements = given[0], given[0]
    if step["over"] != OVER_CALLS:
        elements = integers.elements
    parts = row_parts(n, elements * step["groups"] * step["entries"], LEAST_ENTRIES)
    most = integers.longest if step["over"] == OVER_LISTS else 1
    scratch = scratch_of_parts(parts, step["scratch"] * step["entries"] * most)
    address, out = int64_address(given) + given.itemsize, Matrix(int64_address(scratch), scratch.strides[0], 0)
    if parts > 1:
        share(device, Job(KERNEL, parts, kernel, 0, Sizes(n, 0, 0), Matrix(address, 0, 0), NONE.w, out, 0, 0))
    else:
        call_kernel(kernel, 0, n, address, out.address)
    given[0], scratch[0, 0] = 0, 0  # or they would be freed before: Numba does not know that they are used


@compiled(small=True, error_model="numpy")
def _move(device: np.ndarray, moves: np.ndarray, count: int, source: Listed, target: Listed, n: int) -> int:
    width = target.rows.width
    parts = row_parts(n, n * width, LEAST_BYTES)
    if parts == 1:
        move_rows(n, source, target)
    else:
        sizes = Sizes(n, width, 0)
        x = Matrix(source.rows.address, source.rows.stride, source.list)
        out = Matrix(target.rows.address, target.rows.stride, target.list)
        share(device, Job(MOVE, parts, 0, 0, sizes, x, NONE.w, out, 0, 0))
    return count


@compiled(small=True, error_model="numpy")
def _flush(device: np.ndarray, moves: np.ndarray, count: int) -> None:
    """All moves were done at once."""


@compiled(small=True, error_model="numpy")
def each_entry(device: np.ndarray, kernel: int, n: int, entries: int, given: np.ndarray) -> None:
    """See `Emitter`."""
    call_kernel(kernel, 0, n, int64_address(given) + given.itemsize, 0)
    given[0] = 0  # or it would be freed before the call


@compiled(small=True, error_model="numpy")
def _add_groups(device: np.ndarray, task: np.void, one: np.void, sources: Sources, rows: Rows) -> None:
    """All rows are added to one."""
    operand, offsets = sources.operands[one["operand"]], np.array([0, one["n"]], np.int32)
    source = Listed(rows, at_index(sources.indices, one["offsets"]))
    target = Listed(Rows(operand_rows(operand, 0, sources.memory).address, 0, 0), 0)
    window, begin = operand["window"], int64_address(offsets)
    kernel, entries, given = adding(task, sources.memory, window, 1, source, target, begin)
    each_entry(device, kernel, 1, entries, given)
    offsets[0] = 0  # or it would be freed before the call


#: See `kernels.interpreter`; the table of a CPU is `thread_pool.device`.
run_batches = interpreter(
    Emitter(
        multiply=multiply_rows,
        multiply_each=multiply_each,
        kernel=_kernel,
        each_entry=each_entry,
        move=_move,
        flush=_flush,
        add_groups=_add_groups,
        notes=False,
    )
)
