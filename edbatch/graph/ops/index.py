"""What `x[key]` shows: a view; an entry whose number is known at run time only; several entries, by a list."""

from __future__ import annotations

from typing import Any

import numpy as np

from edbatch.base.exact import is_told
from edbatch.errors import EdBatchError, Place, shown
from edbatch.graph.cell.trace import Payload
from edbatch.graph.expression import Expression
from edbatch.graph.model.parameters import Parameter
from edbatch.graph.ops.advanced_index import advanced_index, several, with_list
from edbatch.graph.ops.loss import pick
from edbatch.graph.ops.shape import INDEX, is_advanced, parse_index
from edbatch.graph.record import graph_of, to_node
from edbatch.graph.recorder import IN_C, VIEW, recorded
from edbatch.graph.spec import Spec
from edbatch.graph.views import NODE_BITS, NODE_MASK, look

_PLAIN = frozenset([int, slice, type(...)])

# From (spec, view, key as the user writes it) to (step of the id, result spec); slices are no dictionary keys before
# Python 3.12, their numbers are.
_views: dict[Any, tuple[int, Spec]] = {}


def _getitem(x: Expression, key: Any) -> Expression:
    kind, has_list = key.__class__, False
    try:
        if kind is int:
            step, spec = _views[x.spec, x.id >> NODE_BITS, key]
        elif kind is slice and key.step is None:
            start, stop = key.start, key.stop
            step, spec = _views[x.spec, x.id >> NODE_BITS, start, stop, start.__class__, stop.__class__]
        elif kind is list or kind is np.ndarray:
            return several(x, key)
        else:
            step, spec = _views[x.spec, x.id >> NODE_BITS, *_flat(key)]
    except (KeyError, EdBatchError):  # an integer argument of a cell refuses to be looked up
        pass
    except TypeError:  # lists are no keys
        has_list = kind is tuple
    else:
        handle = x.graph.handle
        return handle(x.graph, x.id + step, spec)
    return _index(x, key, has_list)


def _place(x: Expression, key: Any) -> str:
    return f"{x.spec!r}[{_shown(key)}]"


def _flat(key: Any) -> tuple[tuple[Any, ...], tuple[type, ...]]:
    """The integers of an index, and their classes; those of a slice behind a None that is called a slice."""
    values: list[Any] = []
    classes: list[type] = []
    for part in key if key.__class__ is tuple else (key,):
        if part.__class__ is slice:
            values += (None, part.start, part.stop, part.step)
            classes += (slice, part.start.__class__, part.stop.__class__, part.step.__class__)
        else:
            values.append(part)
            classes.append(part.__class__)
    return tuple(values), tuple(classes)


def _index(x: Expression, key: Any, has_list: bool) -> Expression:
    place = Place(lambda: _place(x, key))  # not where views are found: functions would have to share x and the key
    if has_list and (listed := with_list(place, x, key)) is not None:
        return listed
    parts = key if isinstance(key, tuple) else (key,)
    if any(isinstance(part, Payload) for part in parts):
        return _index_at_run_time(place, x, parts)
    for part in parts:
        if part.__class__ not in _PLAIN and is_advanced(part):
            out = advanced_index(place, x, key)
            if all(other is None or other.__class__ in _PLAIN for other in parts):
                _remember(x, key, out)
            return out
    index = parse_index(place, x.spec.shape, key)
    out = look(x, INDEX, (("index", index),))
    _remember(x, key, out)
    return out


def _remember(x: Expression, key: Any, out: Expression) -> None:
    """Have an index of integers, slices and new axes be found the next time, if it is a view."""
    if (out.id - x.id) & NODE_MASK == 0:
        entry = (out.id - x.id, out.spec)
        is_known = True
        if key.__class__ is int:
            _views[x.spec, x.id >> NODE_BITS, key] = entry
        elif key.__class__ is slice and key.step is None and is_told((key.start, key.stop)):
            kinds_of = key.start.__class__, key.stop.__class__
            _views[x.spec, x.id >> NODE_BITS, key.start, key.stop, *kinds_of] = entry
        else:
            values, classes = _flat(key)
            is_known = is_told(tuple(value for value in values if value is not ...))
            if is_known:
                _views[x.spec, x.id >> NODE_BITS, values, classes] = entry
        if is_known and IN_C:
            _call.learn((x.spec,), 0, out.spec, key, x.id >> NODE_BITS, entry[0])


def _index_at_run_time(place: Any, x: Expression, parts: tuple[Any, ...]) -> Expression:
    """An index that begins with an integer argument of a cell: an entry is picked, what follows is of that entry."""
    first, *others = parts
    if not isinstance(first, Payload) or any(part is not None and is_advanced(part) for part in others):
        found = next(part for part in parts if isinstance(part, Payload))
        raise found.refused(
            f" ({place}: expected it as the first index, and no list beside it: "
            f"eb.swapaxes(x, 0, axis)[{found}] is an entry of another axis)"
        )
    picked = _picked(x, first)
    return picked[tuple(others)] if others else picked


def _picked(x: Any, index: Any) -> Expression:
    return pick(x, index)


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
        return _picked(parameter, key)
    return _getitem(to_node(graph_of("index", ()), parameter), key)


_call: Any = recorded(VIEW)(_getitem) if IN_C else _getitem
for _class, _getter in ((Expression, _call), (Parameter, _parameter_getitem)):
    setattr(_class, "__getitem__", _getter)  # noqa: B010 (mypy knows that they have none)
