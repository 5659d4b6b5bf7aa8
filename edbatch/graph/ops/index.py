"""What `x[key]` shows: a view; an entry whose number is known at run time only; several entries, by a list."""

from __future__ import annotations

from typing import Any

import numpy as np

from edbatch.base.exact import literal
from edbatch.errors import Place, shown
from edbatch.graph.cell.trace import Payload
from edbatch.graph.expression import Expression
from edbatch.graph.model.parameters import Parameter
from edbatch.graph.op_callers import viewed
from edbatch.graph.ops.advanced_index import advanced_index, several, with_list
from edbatch.graph.ops.loss import pick
from edbatch.graph.ops.shape import INDEX, is_advanced, parse_index
from edbatch.graph.record import graph_of, to_node

_PLAIN = frozenset([int, slice, type(...)])


def _otherwise(x: Any, key: Any) -> Expression | None:
    """What is no view: an entry whose number is known at run time, or several by a list."""
    kind, place = key.__class__, Place(lambda: _place(x, key))
    if kind is list or (kind is np.ndarray and key.ndim):
        return several(place, x, key)
    parts = key if isinstance(key, tuple) else (key,)
    if all([part.__class__ in _PLAIN or part is None for part in parts]):  # noqa: C419 (a generator takes longer)
        return None
    if any(isinstance(part, Payload) for part in parts):
        return _index_at_run_time(place, x, parts)
    if not any(part is not None and is_advanced(part) for part in parts):
        return None
    listed = with_list(place, x, key) if kind is tuple else None
    return advanced_index(place, x, key) if listed is None else listed


def _tell(arguments: tuple[Any]) -> Any:
    """A key of an index of integers, slices and new axes; those of slices are nested, as nothing else in it."""
    (key,) = arguments
    parts = key if key.__class__ is tuple else (key,)
    slices = [(x.start, x.stop, x.step) if x.__class__ is slice else ("...",) if x is ... else x for x in parts]
    return literal((key.__class__ is tuple, *slices))


@viewed(INDEX, _otherwise, _tell)
def _getitem(x: Any, key: Any) -> Any:
    place = Place(lambda: _place(x, key))
    if key is None or (key.__class__ is tuple and None in key):
        return advanced_index(place, x, key)
    return {"index": parse_index(place, x.spec.shape, key)}


def _place(x: Expression, key: Any) -> str:
    return f"{x.spec!r}[{_shown(key)}]"


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


def _shown(key: Any) -> str:
    if isinstance(key, tuple):
        return ", ".join(map(_shown, key))
    if isinstance(key, np.ndarray) and key.ndim:
        return f"array of {len(key):,}"  # written out, it would take longer than the index
    if not isinstance(key, slice):
        return "..." if key is Ellipsis else shown(key)
    parts = [key.start, key.stop] + ([] if key.step is None else [key.step])
    return ":".join("" if part is None else shown(part) for part in parts)


def _parameter_getitem(parameter: Parameter, key: Any) -> Expression:
    if isinstance(key, Payload):
        return pick(parameter, key)  # type: ignore[arg-type]
    return _getitem(to_node(graph_of("index", ()), parameter), key)


for _class, _getter in ((Expression, _getitem), (Parameter, _parameter_getitem)):
    setattr(_class, "__getitem__", _getter)  # noqa: B010 (mypy knows that they have none)
