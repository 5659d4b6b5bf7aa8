"""Sums of all entries up to each."""

from __future__ import annotations

from typing import Any

import numpy as np

from edbatch.graph.columns import current_graph
from edbatch.graph.expression import Expression
from edbatch.graph.op import Sample, composite
from edbatch.graph.op_callers import Attributes, recorded
from edbatch.graph.ops.compare import where
from edbatch.graph.ops.indices import among_zeros
from edbatch.graph.ops.reduce import sum
from edbatch.graph.ops.shape import checked_axis, embed, reshape, swapaxes, unsqueeze
from edbatch.graph.record import array_input

# Of so many entries each sum is added up by itself, in one kernel; of more, block by block.
_BLOCK = 32


def _running(x: Expression) -> Expression:
    """Along the last axis."""
    *lead, size = x.shape
    if size <= _BLOCK:
        lower = array_input(current_graph(), np.tri(size))
        return sum(where(lower, unsqueeze(x, -2), 0), -1)
    blocks = -(-size // _BLOCK)
    inside = _running(reshape(among_zeros(x, (*lead, blocks * _BLOCK)), (*lead, blocks, _BLOCK)))
    totals = _running(inside[..., -1])[..., :-1]
    before = embed(totals, (*lead, blocks), (*((0, n, 1) for n in lead), (1, blocks, 1)))
    return reshape(inside + unsqueeze(before, -1), (*lead, blocks * _BLOCK))[..., :size]


CUMSUM = composite(
    "cumsum",
    lambda shape, axis: shape,
    lambda x, axis: swapaxes(_running(swapaxes(x, axis, -1)), axis, -1),
    (
        Sample(((5,),), {"axis": 0}),
        Sample(((3, 4),), {"axis": 0}),
        Sample(((2, 1),), {"axis": 1}),
        Sample(((70,),), {"axis": 0}),
    ),
)


@recorded(CUMSUM)
def cumsum(x: Any, axis: int) -> Attributes:
    """Along an axis, the sum of all entries up to each; NumPy's and PyTorch's `cumsum`.

    Args:
        x: expression with at least one axis.
        axis: of one sample's value.

    Returns:
        Expression of the shape of `x`.

    Raises:
        EdBatchError: there is no such axis.

    Example:
        >>> import edbatch as eb
        >>> with eb.Graph():
        ...     y = eb.cumsum(eb.input([1.0, 2.0, 3.0]), 0)
        >>> y.value()
        array([1., 3., 6.], dtype=float32)
    """
    return {"axis": checked_axis("cumsum", x.spec, axis)}
