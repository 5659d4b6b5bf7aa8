"""Softmax of rows."""

from __future__ import annotations

import math
from typing import Any

from numba import float32

from edbatch.compiled import compiled
from edbatch.kernels.pointers import floats_at
from edbatch.kernels.scalars import exp


@compiled(error_model="numpy", fastmath={"contract", "reassoc"})
def _sum(x: int, width: int) -> Any:
    """In any order, so that the loop is vectorised."""
    read = floats_at(x)
    total = float32(0)
    for j in range(width):
        total += read[j]
    return total


@compiled(error_model="numpy")
def softmax_rows(n: int, x: int, stride: int, out: int, out_stride: int, width: int, logarithm: int) -> None:
    """out row i = softmax of x row i [width], or its logarithm; float32 at addresses, strides in entries."""
    for i in range(n):
        read, written = floats_at(x + 4 * i * stride), floats_at(out + 4 * i * out_stride)
        top = read[0]
        for j in range(1, width):
            top = read[j] if read[j] > top else top
        # A loop of its own: with the sum in it, it would not be vectorised.
        for j in range(width):
            written[j] = exp(read[j] - top)
        total = _sum(out + 4 * i * out_stride, width)
        if logarithm:
            shift = top + math.log(total)
            for j in range(width):
                written[j] = read[j] - shift
        else:
            scale = float32(1) / total
            for j in range(width):
                written[j] *= scale
