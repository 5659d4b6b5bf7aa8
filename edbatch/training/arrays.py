"""All that training does with arrays, wherever they are: on the CPU or on a device.

Arrays that parameters own, their gradients, and what optimizers remember are the device's (see `kernels.backend`).
Checkpoints, and which rows of a table have a gradient, are the host's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.graph.model.parameters import LookupParameters, Parameter
from edbatch.kernels.backend import Backend


def one_row(array: Any) -> Any:
    """The entries in the order of their memory, [1, size]; a copy only of what is not contiguous."""
    return (array if array.flags.c_contiguous else array.T).reshape(1, -1)


def is_copied(array: Any) -> bool:
    """Whether `one_row` makes a copy, which does not change with the array."""
    return not (array.flags.c_contiguous or array.flags.f_contiguous)


def as_stored(entries: Any, like: Any) -> Any:
    """Entries in the order of the memory of an array, as that is: the inverse of `one_row`."""
    return entries.reshape(like.shape) if like.flags.c_contiguous else entries.reshape(like.shape[::-1]).T


def in_rows(array: Any) -> Any:
    """The entries as rows of neighbours, without a copy: one row, or those columns that a part of a stack has."""
    return array.T if is_copied(array) else one_row(array)


def gradient_of(parameter: Parameter) -> Any:
    """The entries of the gradient, [size]; of a table only the rows that have one."""
    if isinstance(parameter, LookupParameters):
        found = parameter.gradient_rows()
        assert found is not None
        return one_row(found[1])[0]
    return one_row(parameter.gradient_array())[0]


def norm(backend: Backend, entries: Sequence[Any]) -> float:
    """The norm of arrays [entries] together; not a finite number if one of their entries is not.

    The sums of each array stay on the device until all are computed, and come to the host together: the only time that
    an update waits for it. Once or twice more, if that norm is not finite: perhaps only squares are too large.
    """
    found = math.sqrt(sum(backend.to_host(backend.squares(entries)).tolist()))
    if math.isfinite(found):
        return found
    with np.errstate(all="ignore"):
        largest = _on_host(backend, [abs(x).max() for x in entries]).max().item()
        if not math.isfinite(largest):
            return largest
        scaled = [(x * x).sum() for x in (x / largest for x in entries)]
        return largest * math.sqrt(sum(_on_host(backend, scaled).tolist()))


def is_finite(parameter: Parameter) -> bool:
    """Whether all entries of the gradient are finite numbers."""
    return bool(np.isfinite(_on_host(parameter.device.backend, [abs(gradient_of(parameter)).max()])[0]))


def _on_host(backend: Backend, numbers: Sequence[Any]) -> np.ndarray:
    """Numbers of a device, each an array without axes, together on the host."""
    found = backend.allocate(len(numbers), np.dtype(np.float64))
    for at, number in enumerate(numbers):
        found[at] = number
    return backend.to_host(found)


def sent(parameter: Parameter, numbers: Sequence[float], place: str = "update") -> Any:
    """Numbers of the host, in the parameter's dtype, where the parameter is.

    Raises:
        EdBatchError: one is too large for that dtype.
    """
    with np.errstate(over="ignore"):
        found = np.array(numbers, parameter.dtype)
    if not all(map(math.isfinite, found.tolist())):
        large = numbers[int(np.isfinite(found).argmin())]
        raise EdBatchError(f"{place}: the hyper-parameter {large} is too large for {parameter.dtype}")
    return parameter.device.backend.from_host(found, "C")
