"""Expressions in any nesting of tuples, lists, dictionaries and data classes, as functions take and return them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import fields, is_dataclass
from itertools import islice
from typing import Any, NamedTuple

from edbatch.base.exact import exact
from edbatch.errors import EdBatchError
from edbatch.graph.expression import Expression

_ATOMS = (type(None), bool, int, float, complex, str, bytes)
_DEEP = 8  # of nestings that are looked into for what comes first
Make = Callable[[list[Any]], Any]


class Form(NamedTuple):
    """A nesting without what is in it.

    Args:
        make: from the parts to what holds them; None for what is no nesting.
        parts: what it holds.
        kind: equal for nestings of one form.
        leaves: how many, if it holds nothing else; -1: its parts have to be asked.
    """

    make: Make | None
    parts: tuple[Form, ...] = ()
    kind: Hashable = None
    leaves: int = -1

    def build(self, leaves: Iterator[Any]) -> Any:
        """The nesting with these, in order."""
        if self.make is None:
            return next(leaves)
        if self.leaves >= 0:
            return self.make(list(islice(leaves, self.leaves)))
        return self.make([part.build(leaves) for part in self.parts])


LEAF = Form(None)


def form_of(nested: Any, leaf: Callable[[Any], Form | None], place: str) -> Form:
    """The form of a nesting.

    Args:
        leaf: the form of what is not to be looked into; None for what is.
        place: for errors.

    Raises:
        EdBatchError: something is neither.
    """
    found = leaf(nested)
    if found is not None:
        return found
    taken = _opened(nested)
    if taken is None:
        raise EdBatchError(
            f"{place}: it returns {type(nested).__qualname__}; expected expressions, numbers and texts in any nesting "
            "of tuples, lists, dictionaries and data classes"
        )
    held, make, tag = taken
    parts = tuple([form_of(part, leaf, place) for part in held])
    leaves = len(parts) if all(part.make is None for part in parts) else -1
    return Form(make, parts, (tag, *[part.kind for part in parts]), leaves)


def taken_apart(place: str, nested: Any, leaves: list[Expression]) -> Form:
    """The form of what is returned; its expressions are added to the leaves.

    Raises:
        EdBatchError: there is something that must not be returned twice.
    """

    def leaf(x: Any) -> Form | None:
        if isinstance(x, Expression):
            leaves.append(x)
            return LEAF
        return Form(lambda parts: x) if isinstance(x, _ATOMS) else None

    return form_of(nested, leaf, place)


def is_nesting(nested: Any) -> bool:
    """Whether it can be looked into."""
    return isinstance(nested, tuple | list | dict) or (is_dataclass(nested) and not isinstance(nested, type))


def leads_to_expression(nested: Any) -> bool:
    """Whether what comes first in a nesting is an expression, as in states and lists of them; nothing else is seen."""
    for _ in range(_DEEP):
        if isinstance(nested, Expression):
            return True
        if isinstance(nested, tuple | list):
            nested = nested[0] if nested else None
        elif isinstance(nested, dict):
            nested = next(iter(nested.values()), None)
        elif is_dataclass(nested) and not isinstance(nested, type):
            names = fields(nested)
            nested = getattr(nested, names[0].name, None) if names else None
        else:
            return False
    return False


def _opened(nested: Any) -> tuple[list[Any], Make, Hashable] | None:
    """What a nesting holds, what makes one like it, and what tells it from others; None if it is none."""
    kind = type(nested)
    if isinstance(nested, dict):
        keys = tuple(nested)
        if isinstance(nested, defaultdict):
            new = nested.default_factory
            return list(nested.values()), lambda parts: kind(new, zip(keys, parts, strict=True)), (kind, exact(keys))
        return list(nested.values()), lambda parts: kind(zip(keys, parts, strict=True)), (kind, exact(keys))
    if isinstance(nested, tuple | list):
        if hasattr(kind, "_fields"):
            return list(nested), lambda parts: kind(*parts), (kind,)
        return list(nested), kind, (kind, len(nested))
    if is_dataclass(nested) and not isinstance(nested, type):
        names = [field.name for field in fields(nested)]
        return [getattr(nested, name) for name in names], lambda parts: _made(kind, names, parts), (kind,)
    return None


def _made(kind: type, names: list[str], parts: list[Any]) -> Any:
    """An object of a data class, whatever its `__init__` takes."""
    made: Any = object.__new__(kind)
    for name, part in zip(names, parts, strict=True):
        object.__setattr__(made, name, part)
    return made
