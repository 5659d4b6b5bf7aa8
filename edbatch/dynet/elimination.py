"""Inverses and determinants by elimination, written with EdBatch's functions: a few nodes for each column."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import edbatch as eb
from edbatch.dynet.expression import item
from edbatch.errors import EdBatchError

_ALL = slice(None)


class Eliminated(NamedTuple):
    """What elimination finds; no gradient flows through it.

    Attributes:
        inverse: of the matrix.
        logdet: logarithm of the determinant's absolute value.
    """

    inverse: Any
    logdet: Any


def eliminated(name: str, x: Any) -> Eliminated:
    """Gauss and Jordan's way, with the largest entry of each column as its pivot.

    Rows stay where they are, and all shapes the same, so that all columns are of the same types: `free` has a one for
    each row that has had no pivot. In the end row `pivots[k]` is that of column k.

    Args:
        name: of what asks for it, for errors.
        x: square matrix, or a mini-batch of some.
    """
    shape = x.spec.shape
    if len(shape) != 2 or shape[0] != shape[1]:
        raise EdBatchError(f"{name}: expected a square matrix, got dimension {shape}")
    n = shape[0]
    given = eb.stop_gradient(x)
    rows = eb.concatenate([given, eb.add(eb.multiply(given, 0.0), np.eye(n, dtype=np.float32))], 1)
    free: Any = np.ones(n, np.float32)
    pivots, logs = [], []
    for at in range(n):
        column = item(rows, (_ALL, at))
        size = eb.abs(column) if at == 0 else eb.subtract(eb.multiply(eb.add(eb.abs(column), 1.0), free), 1.0)
        chosen = eb.one_hot(eb.argmax(size, 0), n)
        pivot = eb.dot(chosen, column)
        row = eb.divide(eb.matmul(chosen, rows), pivot)
        factors = eb.reshape(eb.subtract(column, chosen), (n, 1))
        rows = eb.subtract(rows, eb.multiply(factors, row))
        free = eb.subtract(free, chosen)
        pivots.append(chosen)
        logs.append(eb.log(eb.abs(pivot)))
    return Eliminated(eb.matmul(eb.stack(pivots), item(rows, (_ALL, slice(n, 2 * n)))), eb.sum(logs))
