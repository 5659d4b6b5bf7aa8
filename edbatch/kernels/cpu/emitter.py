"""What a CPU does with the steps of programs: it calls BLAS and kernels, at once; see `kernels.interpreter`.

Here, and nowhere above, a step is cut into parts for several threads. What is too small for that is done as it is.
"""

from __future__ import annotations

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.kernels.cpu.jobs import (
    COLUMNS,
    KERNEL,
    LEAST_BYTES,
    LEAST_ENTRIES,
    MOVE,
    NONE,
    PRODUCT,
    Job,
    entry_parts,
    move_rows,
    own_memory,
    product_parts,
    row_parts,
)
from edbatch.kernels.cpu.pointers import call_kernel, int64_address
from edbatch.kernels.cpu.products import Gemm, multiply, multiply_each
from edbatch.kernels.cpu.share import SMALL, share
from edbatch.kernels.interpreter import Emitter, interpreter
from edbatch.kernels.program import OVER_CALLS, OVER_LISTS
from edbatch.kernels.tables import (
    PLACE,
    Integers,
    Listed,
    Matrix,
    Memory,
    Rows,
    Sizes,
    Sources,
    at_index,
    operand_rows,
    placed,
)
from edbatch.memory.plan.format import GATHER, SHARED


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
    if parts > 1:
        words, scratch = len(given) - 1, step["scratch"] * step["entries"] * most
        own = own_memory(parts, words + scratch)
        x, out = Matrix(int64_address(given) + given.itemsize, 0, 0), Matrix(int64_address(own), own.strides[0], 0)
        share(device, Job(KERNEL, parts, kernel, 0, Sizes(n, words, scratch), x, NONE.w, out, 0, 0))
        given[0], own[0, 0] = 0, 0  # or they would be freed before: Numba does not know that they are used
        return
    kept = np.empty(step["scratch"] * step["entries"] * most + 1, np.float64)
    given[-1] = int64_address(kept)
    call_kernel(kernel, 0, n, int64_address(given) + given.itemsize)
    given[0], kept[0] = 0, 0  # or they would be freed before the call


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
def _read_scattered(device: np.ndarray, memory: Memory, window: int, n: int, there: Listed, here: Listed) -> None:
    """Copy n rows of a window whose entries do not lie side by side to rows where they do."""
    kernel = memory.scattered[memory.windows[window]["scattered"]]
    given = memory.words[kernel["read_given"] : kernel["read_end"]].copy()
    placed(given, kernel["axes"], there.rows, there.list)
    placed(given, kernel["axes"] + PLACE, here.rows, here.list)
    call_kernel(kernel["read"], 0, n, int64_address(given))
    given[0] = 0  # or it would be freed before the call


@compiled(small=True, error_model="numpy")
def _add_to_operand(device: np.ndarray, task: np.void, one: np.void, sources: Sources, rows: Rows) -> None:
    """Add rows, in the order of the list of them if there is one, to the rows of an operand of one window."""
    operand, indices, memory = sources.operands[one["operand"]], sources.indices, sources.memory
    target, source = operand_rows(operand, 0, memory), Listed(rows, at_index(indices, one["offsets"]))
    scattered = memory.windows[operand["window"]]["scattered"]
    offsets = np.array([0, one["n"]], np.int32)
    if operand["access"] == SHARED:
        kernel, n, axes = task["to_groups"], 1, 1
        given = np.zeros(2 + 2 * PLACE + 1, np.int64)
        given[0] = rows.width // task["itemsize"]
        if scattered >= 0:
            of = memory.scattered[scattered]
            kernel, axes = of["add_lists"], of["axes"]
            given = memory.words[of["lists_given"] : of["lists_end"]].copy()
        given[axes] = int64_address(offsets)
        placed(given, axes + 1, rows, source.list)
        placed(given, axes + 1 + PLACE, Rows(target.address, 0, 0), 0)
    else:
        kernel, n, axes = task["kernel"], int(one["n"]), 1
        given = np.zeros(1 + 2 * PLACE + 1, np.int64)
        given[0] = rows.width // task["itemsize"]
        if scattered >= 0:
            of = memory.scattered[scattered]
            kernel, axes = of["add"], of["axes"]
            given = memory.words[of["add_given"] : of["add_end"]].copy()
        placed(given, axes, rows, source.list)
        placed(given, axes + PLACE, target, at_index(indices, operand["first"]) if operand["access"] == GATHER else 0)
    width, place = given[0], axes + 1 if operand["access"] == SHARED else axes
    parts = entry_parts(width, one["n"] * width, LEAST_ENTRIES) if scattered < 0 else 1
    if parts == 1:
        call_kernel(kernel, 0, n, int64_address(given))
    else:
        own = own_memory(parts, len(given))
        x, out = Matrix(int64_address(given), place, 2), Matrix(int64_address(own), own.strides[0], 0)
        sizes = Sizes(n, len(given), width)
        share(device, Job(COLUMNS, parts, kernel, task["itemsize"], sizes, x, NONE.w, out, 0, 0))
        own[0, 0] = 0
    given[0], offsets[0] = 0, 0  # or they would be freed before the call


#: See `kernels.interpreter`; the table of a CPU is `pool.device`.
run_batches = interpreter(
    Emitter(
        multiply=multiply_rows,
        multiply_each=multiply_each,
        kernel=_kernel,
        move=_move,
        flush=_flush,
        read_scattered=_read_scattered,
        add=_add_to_operand,
        notes=False,
    )
)
