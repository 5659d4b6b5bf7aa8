"""All that training does with arrays, wherever they are: on the CPU or on a device.

Arrays that parameters own, their gradients, and what optimizers remember are the device's; its backend has NumPy's
functions for them (see `NumPyBackend`). Checkpoints, and which rows of a table have a gradient, are the host's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.graph.model.parameters import LookupParameters, Parameter


def backend_of(parameter: Parameter) -> Any:
    """What computes where the parameter's array is."""
    return parameter.device.backend


def one_row(array: Any) -> Any:
    """The entries in the order of their memory, [1, size]; a copy only of what is not contiguous."""
    return (array if array.flags.c_contiguous else array.T).reshape(1, -1)


def as_stored(entries: Any, like: Any) -> Any:
    """Entries in the order of the memory of an array, as that is: the inverse of `one_row`."""
    return entries.reshape(like.shape) if like.flags.c_contiguous else entries.reshape(like.shape[::-1]).T


def in_rows(array: Any) -> Any:
    """The entries as rows of neighbours, without a copy: one row, or those columns that a part of a stack has."""
    return one_row(array) if array.flags.c_contiguous or array.flags.f_contiguous else array.T


def gradient_of(parameter: Parameter) -> Any:
    """The entries of the gradient, [size]; of a table only the rows that have one."""
    if isinstance(parameter, LookupParameters):
        found = parameter.gradient_rows()
        assert found is not None
        return one_row(found[1])[0]
    return one_row(parameter.gradient_array())[0]


def norm(parameters: Sequence[Parameter]) -> float:
    """The norm of all gradients together; not a finite number if one of their entries is not.

    The sums of each parameter stay on the device until all are computed, and come to the host together: the only time
    that an update waits for it. Once or twice more, if that norm is not finite: perhaps only squares are too large.
    """
    backend, entries = backend_of(parameters[0]), [gradient_of(parameter) for parameter in parameters]

    def on_host(numbers: list[Any]) -> np.ndarray:
        return backend.to_host(backend.array(numbers))

    with np.errstate(all="ignore"):
        dot = backend.dot
        found = math.sqrt(sum(on_host([dot(x, x) for x in entries]).tolist()))
        if math.isfinite(found):
            return found
        largest = on_host([backend.abs(x).max() for x in entries]).max().item()
        if not math.isfinite(largest):
            return largest
        return largest * math.sqrt(sum(on_host([backend.sum(backend.square(x / largest)) for x in entries]).tolist()))


def is_finite(parameter: Parameter) -> bool:
    """Whether all entries of the gradient are finite numbers."""
    return bool(backend_of(parameter).isfinite(gradient_of(parameter)).all())


def sent(parameter: Parameter, numbers: Sequence[float], place: str = "update") -> Any:
    """Numbers of the host, in the parameter's dtype, where the parameter is.

    Raises:
        EdBatchError: one is too large for that dtype.
    """
    with np.errstate(over="ignore"):
        found = np.array(numbers, parameter.dtype)
    if not np.isfinite(found).all():
        large = numbers[int(np.isfinite(found).argmin())]
        raise EdBatchError(f"{place}: expected hyper-parameters that {parameter.dtype} has; {large} is too large")
    return backend_of(parameter).from_host(found, "C")
