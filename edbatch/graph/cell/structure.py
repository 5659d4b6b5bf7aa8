"""Nestings of tuples, lists and dictionaries, taken apart and put together again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Structure:
    """The shape of a nesting; its leaves are numbered in order.

    Args:
        kind: None for a leaf, else tuple, list, dict or a named tuple's class.
        parts: what is nested in it.
        keys: of a dict.
    """

    kind: type | None
    parts: tuple[Structure, ...] = ()
    keys: tuple[Any, ...] = ()

    def build(self, leaves: list[Any]) -> Any:
        """The nesting with these leaves.

        Example:
            >>> leaves, structure = flatten({"h": 1, "rest": (2, [3])})
            >>> leaves
            [1, 2, 3]
            >>> structure.build([10, 20, 30])
            {'h': 10, 'rest': (20, [30])}
        """
        return self._build(iter(leaves))

    def _build(self, leaves: Iterator[Any]) -> Any:
        if self.kind is None:
            return next(leaves)
        parts = [part._build(leaves) for part in self.parts]
        if self.kind is dict:
            return dict(zip(self.keys, parts, strict=True))
        make: Callable[..., Any] = self.kind
        return make(*parts) if hasattr(self.kind, "_fields") else make(parts)


def flatten(nested: Any) -> tuple[list[Any], Structure]:
    """The leaves of a nesting, in order, and its structure."""
    if isinstance(nested, dict):
        parts, keys = list(nested.values()), tuple(nested)
        kind: type = dict
    elif isinstance(nested, tuple | list):
        parts, keys = list(nested), ()
        kind = type(nested)
    else:
        return [nested], Structure(None)
    leaves: list[Any] = []
    structures = []
    for part in parts:
        below, structure = flatten(part)
        leaves += below
        structures.append(structure)
    return leaves, Structure(kind, tuple(structures), keys)
