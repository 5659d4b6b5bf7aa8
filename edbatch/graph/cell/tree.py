"""Nestings of tuples, lists, dictionaries and data classes, flattened to their leaves and built again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from edbatch.base.exact import exact
from edbatch.errors import EdBatchError
from edbatch.graph.expression import Expression

_ATOMS = (type(None), bool, int, float, complex, str, bytes)
_CONTAINERS = (tuple, list, dict)
_DEEP = 8  # of nestings that are looked into for what comes first


class TreeDef(NamedTuple):
    """The shape of a nesting, whose leaves are numbered in order.

    Args:
        kind: a class; None for a leaf.
        keys: of a dictionary; the names of fields; of an atom, the atom.
        told: what else tells it from others; of a dictionary after what it is made with.
    """

    kind: type | None
    parts: tuple[TreeDef, ...] = ()
    keys: tuple[Any, ...] = ()
    told: tuple[Hashable, ...] = ()

    def build(self, leaves: Iterable[Any]) -> Any:
        """The nesting with these leaves.

        Example:
            >>> leaves, tree = flatten({"h": 1, "rest": (2, [3])})
            >>> leaves
            [1, 2, 3]
            >>> tree.build([10, 20, 30])
            {'h': 10, 'rest': (20, [30])}
        """
        return self._build(iter(leaves))

    def _build(self, leaves: Iterator[Any]) -> Any:
        kind: Any = self.kind
        if kind is None:
            return next(leaves)
        parts = [next(leaves) if part.kind is None else part._build(leaves) for part in self.parts]
        if issubclass(kind, (tuple, list)):
            return kind(*parts) if hasattr(kind, "_fields") else kind(parts)
        if issubclass(kind, dict):
            made = kind(*self.told[:-1])
            made.update(zip(self.keys, parts, strict=True))
            return made
        if kind in _ATOMS:
            return self.keys[0]
        made = object.__new__(kind)  # of a data class, whatever its `__init__` takes
        for name, part in zip(self.keys, parts, strict=True):
            object.__setattr__(made, name, part)
        return made


LEAF = TreeDef(None)


def tree_of(nested: Any, leaf: Callable[[Any], TreeDef | None], place: str = "") -> TreeDef:
    """The shape of a nesting; `leaf` gives that of what is not looked into, and None for the rest."""
    found = leaf(nested)
    if found is not None:
        return found
    kind: type = type(nested)
    keys: tuple[Any, ...] = ()
    told: tuple[Hashable, ...] = ()
    if isinstance(nested, dict):
        keys, held = tuple(nested), list(nested.values())
        told = *((nested.default_factory,) if isinstance(nested, defaultdict) else ()), exact(keys)
    elif isinstance(nested, tuple | list):
        held = list(nested)
    elif is_nesting(nested):
        keys = tuple([field.name for field in fields(nested)])
        held = [getattr(nested, name) for name in keys]
    else:
        raise EdBatchError(
            f"{place}: it returns {kind.__qualname__}; expected expressions, numbers and texts in any nesting of "
            "tuples, lists, dictionaries and data classes"
        )
    return TreeDef(kind, tuple([tree_of(part, leaf, place) for part in held]), keys, told)


def flatten(nested: Any) -> tuple[list[Any], TreeDef]:
    """The leaves of a nesting of tuples, lists and dictionaries, in order, and its shape."""
    leaves: list[Any] = []

    def leaf(x: Any) -> TreeDef | None:
        if isinstance(x, _CONTAINERS):
            return None
        leaves.append(x)
        return LEAF

    return leaves, tree_of(nested, leaf)


def flatten_result(place: str, nested: Any) -> tuple[list[Expression], TreeDef]:
    """The expressions in what a function returns, and its shape, with the numbers and texts in it."""
    leaves: list[Expression] = []

    def leaf(x: Any) -> TreeDef | None:
        if isinstance(x, Expression):
            leaves.append(x)
            return LEAF
        return TreeDef(type(x), (), (x,)) if isinstance(x, _ATOMS) else None

    return leaves, tree_of(nested, leaf, place)


def is_nesting(nested: Any) -> bool:
    """Whether it can be looked into."""
    return isinstance(nested, _CONTAINERS) or (is_dataclass(nested) and not isinstance(nested, type))


def leads_to_expression(nested: Any) -> bool:
    """Whether what comes first in a nesting is an expression, as in states and lists of them; nothing else is seen."""
    for _ in range(_DEEP):
        if not is_nesting(nested):
            return isinstance(nested, Expression)
        parts = nested.values() if isinstance(nested, dict) else nested
        if not isinstance(nested, _CONTAINERS):
            parts = (getattr(nested, field.name, None) for field in fields(nested))
        nested = next(iter(parts), None)
    return False
