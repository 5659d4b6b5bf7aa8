"""Indices with new axes and with several integers: `x[None]`, `x[[0, 2]]`, `x[mask]`, with NumPy's meaning."""

from __future__ import annotations

from typing import Any

import numpy as np

from edbatch.base.exact import is_told
from edbatch.errors import EdBatchError, missing_memory
from edbatch.graph.expression import Expression
from edbatch.graph.ops.indices import counted, gather
from edbatch.graph.ops.shape import is_advanced, reshape, transpose
from edbatch.graph.record import array_input


def advanced_index(place: Any, x: Expression, key: Any) -> Expression:
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
    chosen = integers(place, parts[at], x.shape[axis])
    # NumPy puts the new axis where the list is, or first if integers stand apart from it.
    fixed = [number for number, part in enumerate(parts) if number == at or not isinstance(part, slice | None)]
    together = fixed[-1] - fixed[0] == len(fixed) - 1
    if not len(chosen):
        if not together:
            raise EdBatchError(f"{place}: expected a list of at least one integer beside integers that stand apart")
        return _with_new_axes(x, [*parts[:at], slice(0, 0), *parts[at + 1 :]])
    seen = _with_new_axes(x, [*parts[:at], slice(None), *parts[at + 1 :]])
    along = sum(part is None or isinstance(part, slice) for part in parts[:at])
    found = taken(seen, chosen, along)
    order = None if together else (along, *(axis for axis in range(found.ndim) if axis != along))
    if key.__class__ is tuple and (told := _told(key)) is not None:
        _plans[x.spec, told] = axis, along, order
    return found if order is None else transpose(found, order)


# By spec and all of an index but what its list holds: the axis of the list, that of the result, and the result's order.
_plans: dict[Any, tuple[int, int, tuple[int, ...] | None]] = {}


def _told(key: tuple[Any, ...]) -> Any:
    """An index without what its list holds, as a part of a key; None if its other parts do not tell it."""
    told: list[Any] = []
    for part in key:
        if part.__class__ is list or (part.__class__ is np.ndarray and part.ndim):
            told.append(list)
        elif part.__class__ is slice:
            bounds = part.start, part.stop, part.step
            if not is_told(bounds):
                return None
            told += (slice, *bounds, *map(type, bounds))
        elif part.__class__ is int or part is None or part is ...:
            told.append(part)
        else:
            return None
    return tuple(told)


def with_list(place: Any, x: Expression, key: tuple[Any, ...]) -> Expression | None:
    """The quick way: what it shows if one that differs only in what its list holds has been asked for, or None."""
    plan = _plans.get((x.spec, _told(key)))
    if plan is None:
        return None
    axis, along, order = plan
    at = [part.__class__ in (list, np.ndarray) for part in key].index(True)
    chosen = integers(place, key[at], x.spec.shape[axis])
    if not len(chosen):
        return None
    found = taken(Expression.__getitem__(x, (*key[:at], slice(None), *key[at + 1 :])), chosen, along)
    return found if order is None else transpose(found, order)


def several(place: Any, x: Expression, chosen: Any) -> Expression:
    """`x[chosen]` for a list or an array alone: of at least one entry, the quick way; errors as of `advanced_index`."""
    numbers = integers(place, chosen, x.spec.shape[0]) if x.spec.shape else None
    return advanced_index(place, x, chosen) if numbers is None or not len(numbers) else taken(x, numbers, 0)


def taken(x: Expression, chosen: np.ndarray, axis: int) -> Expression:
    """Entries by their numbers along an axis: of as many, whichever they are, the nodes are of one type."""
    if x.ndim > 1:
        shape = (*x.shape[:axis], len(chosen), *x.shape[axis + 1 :])
        numbers = np.empty(shape, x.graph.dtype)  # filled, not `np.broadcast_to`, which takes longer than all the rest
        numbers[...] = chosen.reshape(-1, *(1,) * (x.ndim - axis - 1))
        chosen = numbers
    return gather(x, array_input(x.graph, chosen), axis)


def _without_ellipsis(place: Any, ndim: int, parts: list[Any]) -> list[Any]:
    """`...` written out as the slices it stands for."""
    ellipses = [at for at, part in enumerate(parts) if part is Ellipsis]
    missing = ndim - sum(part is not None and part is not Ellipsis for part in parts)
    if len(ellipses) > 1 or missing < 0:
        raise EdBatchError(f"{place}: too many indices for {ndim} axes")
    at = ellipses[0] if ellipses else len(parts)
    return [*parts[:at], *[slice(None)] * missing, *parts[at + 1 :]]


def _with_new_axes(x: Expression, parts: list[Any]) -> Expression:
    seen = Expression.__getitem__(x, tuple(part for part in parts if part is not None))  # of each entry of an array
    if None not in parts:
        return seen
    sizes = iter(seen.shape)
    return reshape(seen, [1 if part is None else next(sizes) for part in parts if isinstance(part, slice | None)])


def integers(place: Any, given: Any, size: int) -> np.ndarray:
    """The entries that a list of integers or of truth values names, of so many, counted from the beginning."""
    try:
        array = np.asarray(given)
    except ValueError:
        array = np.empty((), object)
    except MemoryError:
        raise missing_memory(str(place), given) from None
    if array.dtype == bool and array.shape == (size,):
        array = array.nonzero()[0]
    if array.ndim != 1 or (array.dtype.kind not in "iu" and len(array)):
        raise EdBatchError(f"{place}: expected a list of integers, or of {size} truth values")
    return counted(place, array, size) if len(array) else array
