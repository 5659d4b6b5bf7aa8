"""What several threads can do together, and where it is cut.

A product is cut over the columns of its result, or over its rows where it has many more of these; kernels and copies
over rows. Never over what is added up. Where the cuts are follows from the sizes alone, and one thread makes them too:
a BLAS may well give other bits for a part of a product than for the whole (OpenBLAS does, but for processors with
AVX-512), so that nothing else gives the same bits for every number of threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.kernels.cpu.pointers import call_kernel, words_at
from edbatch.kernels.cpu.products import Gemm, multiply
from edbatch.kernels.tables import Listed, Matrix, Rows, Sizes

PRODUCT, KERNEL, MOVE = range(3)

# A product of fewer multiplications (about 50 us) is not cut. A BLAS copies the other operand into another order for
# each part, which takes 1.5 to 5 % longer in two parts and up to twice that in four, but for few rows: these are
# multiplied as they lie in small pieces, in whichever part (see `products`), and four parts take as long as one.
LEAST_PRODUCT = 2_000_000
MOST_PARTS, WIDE, FEW = 4, 1024, 128  # so many columns of so few rows, or twice as many, are worth more than two parts
ALIGNED = 16  # what parts begin at: a line of the cache, and the columns that a BLAS computes at a time
# Entries of a kernel (about 10 us), and bytes of a copy; a part has half of that at least.
LEAST_ENTRIES, LEAST_BYTES = 8192, 1 << 17
WORD = 4  # bytes that rows are copied by
LINE_WORDS = 8  # of a line of the cache


class Job(NamedTuple):
    """A step on some rows.

    Attributes:
        kind: PRODUCT, KERNEL, or MOVE.
        parts: in which it is done.
        function: the address of a BLAS' function, or of the kernel.
        itemsize: bytes of an entry.
        sizes: of a product. Of a kernel: rows. Of a copy: rows, and bytes of one.
        x, w, out: of a product. Of a kernel x: the address of what it is given; `out`: the address of scratch, and
            bytes of it for each part. Of a copy x and `out`: address, stride and list.
        add: of a product, whether it is added.
        small: see `products.Gemm`.
    """

    kind: int
    parts: int
    function: int
    itemsize: int
    sizes: Sizes
    x: Matrix
    w: Matrix
    out: Matrix
    add: int
    small: int


#: No job, of the type of all.
NONE = Job(0, 0, 0, 0, Sizes(0, 0, 0), Matrix(0, 0, 0), Matrix(0, 0, 0), Matrix(0, 0, 0), 0, 0)


@compiled(small=True)
def product_parts(sizes: Sizes, itemsize: int) -> int:
    """In how many parts a product is computed."""
    along = cut_along(sizes)
    if sizes.m * sizes.n * sizes.k * itemsize < 4 * LEAST_PRODUCT or along < 4 * ALIGNED:
        return 1
    return MOST_PARTS if along >= (WIDE if min(sizes.m, sizes.n) <= FEW else 2 * WIDE) else 2


@compiled(small=True)
def cut_along(sizes: Sizes) -> int:
    """Of what is cut, how much there is: columns, or rows."""
    return sizes.n if cut_columns(sizes) else sizes.m


@compiled(small=True)
def cut_columns(sizes: Sizes) -> bool:
    """Whether columns of a product are cut, and not rows."""
    return 2 * sizes.n >= sizes.m


@compiled(small=True)
def row_parts(n: int, size: int, least: int) -> int:
    """In how many parts n rows are computed that are of some size together, where less than `least` is not cut."""
    return min(MOST_PARTS, n, 2 * size // least) if size >= least else 1


@compiled(error_model="numpy")
def cut(n: int, parts: int, part: int, aligned: int) -> int:
    """Where a part of n begins, and the one before it ends."""
    width = -(-n // (parts * aligned)) * aligned
    return min(n, part * width)


@compiled(error_model="numpy")
def move_rows(n: int, source: Listed, target: Listed) -> None:
    """Copy n rows of the source to rows of the target, of its width; a stride of 0 repeats one row.

    Rows are copied by words, entries of float32 or halves of float64. Arrays that Numba indexes with signed numbers
    would be tested for counting from the end, which keeps the inner loop from being vectorised (measured: 2.5 GB/s,
    without the test 20 GB/s).
    """
    words = target.rows.width // WORD
    first, to, stride, distance = source.rows.address, target.rows.address, source.rows.stride, target.rows.stride
    listed, positions = words_at(source.list), words_at(target.list)
    if source.list != 0 and target.list == 0:  # by far the most: without a question for each row
        for i in range(n):
            read, written = words_at(first + listed[i] * stride), words_at(to + i * distance)
            for j in range(words):
                written[j] = read[j]
        return
    for i in range(n):
        row = listed[i] if source.list != 0 else i
        position = positions[i] if target.list != 0 else i
        read, written = words_at(first + row * stride), words_at(to + position * distance)
        for j in range(words):
            written[j] = read[j]


@compiled(error_model="numpy")
def do_part(job: Job, part: int) -> None:
    """Do one part of a job."""
    if job.kind == PRODUCT:
        _multiply_part(job, part)
        return
    n, parts = job.sizes.m, job.parts
    first, stop = cut(n, parts, part, 1), cut(n, parts, part + 1, 1)
    if job.kind == MOVE:
        move_rows(stop - first, _rows_from(job.x, job.sizes.n, first), _rows_from(job.out, job.sizes.n, first))
    else:
        call_kernel(job.function, first, stop, job.x.address, job.out.address + part * job.out.distance)


@compiled(error_model="numpy")
def _multiply_part(job: Job, part: int) -> None:
    (m, n, k), x, w, out, itemsize = job.sizes, job.x, job.w, job.out, job.itemsize
    along = cut_along(job.sizes)
    first, stop = cut(along, job.parts, part, ALIGNED), cut(along, job.parts, part + 1, ALIGNED)
    if first == stop:
        return
    if cut_columns(job.sizes):
        n = stop - first
        w = Matrix(w.address + itemsize * first * (w.distance if w.turned else 1), w.distance, w.turned)
        out = Matrix(out.address + itemsize * first, out.distance, 0)
    else:
        m = stop - first
        x = Matrix(x.address + itemsize * first * (1 if x.turned else x.distance), x.distance, x.turned)
        out = Matrix(out.address + itemsize * first * out.distance, out.distance, 0)
    multiply(Gemm(job.function, itemsize, job.small), Sizes(m, n, k), x, w, out, job.add)


@compiled(error_model="numpy")
def _rows_from(given: Matrix, width: int, first: int) -> Listed:
    address, stride, listed = given
    if listed != 0:
        return Listed(Rows(address, stride, width), listed + 4 * first)
    return Listed(Rows(address + first * stride, stride, width), 0)


@compiled(small=True, error_model="numpy")
def scratch_of_parts(parts: int, entries: int) -> np.ndarray:
    """Room for so many entries of each part, which does not share a line of the cache with another's.

    Who asks for a job makes it: Numba allocates with Python's allocator, and `tracemalloc` takes Python's lock there,
    which the thread that asks holds while it waits for the others.
    """
    return np.empty((parts, entries + LINE_WORDS), np.int64)
