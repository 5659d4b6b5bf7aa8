"""Arrays of other libraries."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from edbatch.errors import EdBatchError, missing_memory

#: What libraries raise that do not give their numbers away: on a GPU, say, or where a gradient is recorded.
UNREADABLE = (TypeError, ValueError, RuntimeError, BufferError, AttributeError)


def from_dlpack(value: Any, place: str = "from_dlpack") -> np.ndarray:
    """A NumPy array of whatever holds numbers, without a copy where that is possible.

    Args:
        value: an object with `__dlpack__` (tensors of PyTorch, JAX, CuPy, ... in the CPU's memory; parameters), a NumPy
            array, a number, or nested lists. The array shares the memory of the first two, and is read-only if
            `value` is.
        place: what error messages begin with.

    Raises:
        EdBatchError: it does not hold real numbers, is masked, is in a GPU's memory, has a dtype that NumPy lacks
            (bfloat16), or takes part in another library's differentiation.

    Example:
        >>> from edbatch import from_dlpack
        >>> from_dlpack([[1, 2]]).shape
        (1, 2)
    """
    refuse_masked(value, place)
    try:
        # NumPy's own arrays need no detour, on which some are refused (of another byte order, say).
        is_foreign = hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray | np.generic)
        array = np.from_dlpack(value) if is_foreign else np.asarray(value)
    except MemoryError:
        raise missing_memory(place, value) from None
    except UNREADABLE as error:
        raise EdBatchError(f"{place}: expected numbers in the CPU's memory ({error})") from None
    if array.dtype.kind not in "fiub":
        found = "complex numbers" if array.dtype.kind == "c" else type(value).__name__
        raise EdBatchError(f"{place}: expected numbers, got {found}")
    return array


def cast(array: np.ndarray, dtype: np.dtype, place: str) -> np.ndarray:
    """The numbers in a dtype, without a copy where they have it; a finite one that is too large for it is an error."""
    try:
        with np.errstate(over="raise"):
            return np.asarray(array, dtype)
    except FloatingPointError:
        largest = np.abs(array[np.isfinite(array)]).max()
        raise EdBatchError(f"{place}: {largest} is too large for {dtype}") from None


def refuse_masked(value: Any, place: str) -> None:
    """Raise `EdBatchError` for masked arrays, alone or in a list: as arrays of numbers they would lose their mask."""
    masked = getattr(sys.modules.get("numpy.ma"), "MaskedArray", ())  # without importing it: then there are none
    for part in (value, *value) if isinstance(value, list | tuple) else (value,):
        if isinstance(part, masked):
            raise EdBatchError(f"{place}: expected an array without a mask, got a masked array; fill it first")
