"""Indices with new axes and with several integers: `x[None]`, `x[[0, 2]]`, `x[mask]`, with NumPy's meaning."""

from __future__ import annotations

from typing import Any

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.graph.expression import Expression
from edbatch.graph.ops.indices import gather
from edbatch.graph.ops.shape import is_advanced, reshape, transpose


def advanced_index(place: str, x: Expression, key: Any) -> Expression:
    """`x[key]`: new axes are a reshape, several integers a `gather`.

    Args:
        place: what error messages begin with.
        key: as the user writes it; integers, slices, `...`, None, and at most one list or array of integers or of
            truth values.

    Raises:
        EdBatchError: a list of something else, two lists, or what plain indices raise.
    """
    parts = _without_ellipsis(place, x.ndim, list(key) if isinstance(key, tuple) else [key])
    lists = [at for at, part in enumerate(parts) if part is not None and is_advanced(part)]
    if not lists:
        return _with_new_axes(x, parts)
    if len(lists) > 1:
        raise EdBatchError(f"{place}: expected at most one list, got {len(lists)}; index one after the other")
    at = lists[0]
    axis = at - sum(part is None for part in parts[:at])
    if axis >= x.ndim:
        raise EdBatchError(f"{place}: too many indices for {x.ndim} axes")
    chosen = _integers(place, parts[at], x.shape[axis])
    # NumPy puts the new axis where the list is, or first if integers stand apart from it.
    fixed = [number for number, part in enumerate(parts) if number == at or not isinstance(part, slice | None)]
    together = fixed[-1] - fixed[0] == len(fixed) - 1
    if not len(chosen):
        if not together:
            raise EdBatchError(f"{place}: expected a list of at least one integer beside integers that stand apart")
        return _with_new_axes(x, [*parts[:at], slice(0, 0), *parts[at + 1 :]])
    seen = _with_new_axes(x, [*parts[:at], slice(None), *parts[at + 1 :]])
    along = sum(part is None or isinstance(part, slice) for part in parts[:at])
    found = _taken(seen, chosen, along)
    return found if together else transpose(found, (along, *(axis for axis in range(found.ndim) if axis != along)))


def _taken(x: Expression, chosen: np.ndarray, axis: int) -> Expression:
    """Entries by their numbers along an axis: of as many, whichever they are, the nodes are of one type."""
    shape = (*x.shape[:axis], len(chosen), *x.shape[axis + 1 :])
    numbers = chosen.reshape(-1, *(1,) * (x.ndim - axis - 1))
    return gather(x, np.broadcast_to(numbers, shape), axis)


def _without_ellipsis(place: str, ndim: int, parts: list[Any]) -> list[Any]:
    """`...` written out as the slices it stands for."""
    ellipses = [at for at, part in enumerate(parts) if part is Ellipsis]
    missing = ndim - sum(part is not None and part is not Ellipsis for part in parts)
    if len(ellipses) > 1 or missing < 0:
        raise EdBatchError(f"{place}: too many indices for {ndim} axes")
    at = ellipses[0] if ellipses else len(parts)
    return [*parts[:at], *[slice(None)] * missing, *parts[at + 1 :]]


def _with_new_axes(x: Expression, parts: list[Any]) -> Expression:
    seen = x[tuple(part for part in parts if part is not None)]
    if None not in parts:
        return seen
    sizes = iter(seen.shape)
    return reshape(seen, [1 if part is None else next(sizes) for part in parts if isinstance(part, slice | None)])


def _integers(place: str, given: Any, size: int) -> np.ndarray:
    try:
        array = np.asarray(given)
    except ValueError:
        array = np.empty((), object)
    if array.dtype == bool and array.shape == (size,):
        array = np.flatnonzero(array)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and len(array)):
        raise EdBatchError(f"{place}: expected a list of integers, or of {size} truth values")
    wrong = array[(array < -size) | (array >= size)]
    if len(wrong):
        raise EdBatchError(f"{place}: index {wrong[0]} is out of range for {size} entries")
    return array.astype(np.int64)
