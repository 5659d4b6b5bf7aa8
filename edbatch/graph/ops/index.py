"""Indexing with NumPy's meaning: a view, an entry whose number is known at run time only, or several by a list."""

from __future__ import annotations

from typing import Any

import numpy as np

from edbatch.errors import EdBatchError, Place, shown
from edbatch.graph.cell.trace import Payload
from edbatch.graph.expression import Expression
from edbatch.graph.integers import chosen_entries
from edbatch.graph.model.parameters import Parameter
from edbatch.graph.op_callers import viewed
from edbatch.graph.ops.indices import gather
from edbatch.graph.ops.loss import pick
from edbatch.graph.ops.shape import INDEX, is_advanced, parse_index, reshape, transpose, without_ellipsis
from edbatch.graph.record import array_input, graph_of, to_node

_PLAIN = frozenset([int, slice, type(...)])
_ALL = slice(None)


def _otherwise(x: Any, key: Any) -> Expression | None:
    """What is no view: an entry whose number is known at run time, or several by a list."""
    kind, place = key.__class__, Place(lambda: _place(x, key))
    if (kind is list or (kind is np.ndarray and key.ndim)) and x.spec.shape:
        chosen = chosen_entries(place, key, x.spec.shape[0])
        return _taken(x, chosen, 0) if len(chosen) else _advanced(place, x, key)
    parts = key if isinstance(key, tuple) else (key,)
    if all([part.__class__ in _PLAIN or part is None for part in parts]):  # noqa: C419 (a generator takes longer)
        return None
    if any(isinstance(part, Payload) for part in parts):
        return _index_at_run_time(place, x, parts)
    return _advanced(place, x, key) if any(part is not None and is_advanced(part) for part in parts) else None


@viewed(INDEX, _otherwise)
def _getitem(x: Any, key: Any) -> Any:
    place = Place(lambda: _place(x, key))
    if key is None or (key.__class__ is tuple and None in key):
        return _advanced(place, x, key)
    return {"index": parse_index(place, x.spec.shape, key)}


def _place(x: Expression, key: Any) -> str:
    return f"{x.spec!r}[{_shown(key)}]"


def _shown(key: Any) -> str:
    if isinstance(key, tuple):
        return ", ".join(map(_shown, key))
    if isinstance(key, np.ndarray) and key.ndim:
        return f"array of {len(key):,}"  # written out, it would take longer than the index
    if not isinstance(key, slice):
        return "..." if key is Ellipsis else shown(key)
    parts = [key.start, key.stop] + ([] if key.step is None else [key.step])
    return ":".join("" if part is None else shown(part) for part in parts)


def _index_at_run_time(place: Any, x: Expression, parts: tuple[Any, ...]) -> Expression:
    """An index that begins with an integer argument of a cell: an entry is picked, what follows is of that entry."""
    first, *others = parts
    if not isinstance(first, Payload) or any(part is not None and is_advanced(part) for part in others):
        found = next(part for part in parts if isinstance(part, Payload))
        raise found.refused(
            f" ({place}: expected it as the first index, and no list beside it: "
            f"eb.swapaxes(x, 0, axis)[{found}] is an entry of another axis)"
        )
    picked = pick(x, first)  # type: ignore[arg-type]
    return picked[tuple(others)] if others else picked


def _advanced(place: Any, x: Expression, key: Any) -> Expression:
    """An index with new axes, which are a reshape, or with several integers, a `gather`."""
    parts = without_ellipsis(place, x.ndim, key)
    lists = [
        at for at, part in enumerate(parts) if part.__class__ is not slice and part is not None and is_advanced(part)
    ]
    if not lists:
        return _with_new_axes(x, parts)
    if len(lists) > 1:
        raise EdBatchError(f"{place}: expected at most one list, got {len(lists)}; index one after the other")
    (at,) = lists
    before, listed, after = parts[:at], parts[at], parts[at + 1 :]
    chosen = chosen_entries(place, listed, x.shape[at - before.count(None)])
    # NumPy puts the new axis where the list is, or first if integers stand apart from it.
    fixed = [number for number, part in enumerate(parts) if number == at or not isinstance(part, slice | None)]
    together = fixed[-1] - fixed[0] == len(fixed) - 1
    if not len(chosen):
        if not together:
            raise EdBatchError(f"{place}: expected a list of at least one integer beside integers that stand apart")
        return _with_new_axes(x, [*before, slice(0, 0), *after])
    along = sum(part is None or isinstance(part, slice) for part in before)
    found = _taken(_with_new_axes(x, [*before, _ALL, *after]), chosen, along)
    return found if together else transpose(found, (along, *(axis for axis in range(found.ndim) if axis != along)))


def _taken(x: Expression, chosen: np.ndarray, axis: int) -> Expression:
    """Entries by their numbers along an axis: of as many, whichever they are, the nodes are of one type."""
    if x.ndim > 1:
        shape = (*x.shape[:axis], len(chosen), *x.shape[axis + 1 :])
        numbers = np.empty(shape, x.graph.dtype)  # filled, not `np.broadcast_to`, which takes longer than all the rest
        numbers[...] = chosen.reshape(-1, *(1,) * (x.ndim - axis - 1))
        chosen = numbers
    return gather(x, array_input(x.graph, chosen), axis)


def _with_new_axes(x: Expression, parts: list[Any]) -> Expression:
    if all([part.__class__ is slice and part == _ALL for part in parts]):  # noqa: C419
        return x
    seen = Expression.__getitem__(x, tuple(part for part in parts if part is not None))  # of each entry of an array
    if None not in parts:
        return seen
    sizes = iter(seen.shape)
    return reshape(seen, [1 if part is None else next(sizes) for part in parts if isinstance(part, slice | None)])


def _parameter_getitem(parameter: Parameter, key: Any) -> Expression:
    if isinstance(key, Payload):
        return pick(parameter, key)  # type: ignore[arg-type]
    return _getitem(to_node(graph_of("index", ()), parameter), key)


for _class, _getter in ((Expression, _getitem), (Parameter, _parameter_getitem)):
    setattr(_class, "__getitem__", _getter)  # noqa: B010 (mypy knows that they have none)
