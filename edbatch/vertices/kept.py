"""Recordings of vertex functions, kept for later calls while nothing that they depend on has changed."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from types import FunctionType, MethodType
from typing import Any

from edbatch.base.exact import Identity
from edbatch.base.locking import lock
from edbatch.graph.cell.trace import graph_kind
from edbatch.graph.cell.tree import flatten
from edbatch.graph.columns import Columns
from edbatch.graph.function_state import function_state
from edbatch.graph.guard import GuardedState, holding
from edbatch.graph.integers import Integers
from edbatch.graph.model.parameters import Parameter
from edbatch.vertices.automaton import Automaton
from edbatch.vertices.column import Column

MOST_KEYS = 64
MOST_STATES = 4  # of what functions depend on

Functions = tuple[Callable[..., Any], ...]


class VertexState(GuardedState):
    """The recordings in one state of all that functions depend on; `key`: of such calls, see `Stores`."""

    def __init__(self, functions: Functions, names: list[str], key: Hashable) -> None:
        super().__init__()
        self.key = key
        for name, (function, owner) in zip(names, map(_taken_apart, functions), strict=True):
            held = Identity(function if owner is None else owner).held
            self.guards[len(self.guards)] = function_state(name, function, owner), held, None
        self.automaton = Automaton(len(functions))


class Stores(dict[Hashable, list[VertexState] | None]):
    """Kept recordings, by owners, options, and specs of inputs; the latest state last. Copies start anew.

    Something is kept from the second call on: looking for what functions depend on takes longer than recording them.
    None: what a call records is right for that call only.
    """

    def find(self, functions: Functions, names: list[str], base: Columns, inputs: list[Any]) -> VertexState | None:
        """The recordings that are right now; None if nothing is kept of this call."""
        key = _key(functions, base, inputs)
        if key is None:
            return None
        with lock:
            is_first = key not in self
            if is_first and len(self) >= MOST_KEYS:
                self.clear()
            states = self.setdefault(key, [])
            if is_first or states is None:
                return None
            found = holding(states)
        if found is None:
            found = VertexState(functions, names, key)
            if any(guard.is_over for guard, _, _ in found.guards.values()):
                return None
            self[key] = [*states, found][-MOST_STATES:]
        return found

    def forget(self, state: VertexState, for_good: bool) -> None:
        """Keep a state no more, which was not right; `for_good`: nor others of such calls."""
        states = self.get(state.key) or []
        self[state.key] = None if for_good else [one for one in states if one is not state]

    def __reduce__(self) -> tuple[Any, ...]:
        return Stores, ()


def _key(functions: Functions, base: Columns, inputs: list[Any]) -> Hashable:
    """By which recordings of a call are found; None if it cannot be said what that depends on."""
    if base.options.check:
        return None
    key: list[Any] = [graph_kind(base)]
    for (function, owner), given in zip(map(_taken_apart, functions), inputs, strict=True):
        if function.__class__ is not FunctionType:
            return None
        leaves, tree = flatten(given)
        key += id(function), id(owner), tree
        for leaf in leaves:
            if isinstance(leaf, Column):
                key.append((leaf.spec, leaf.view))
            elif isinstance(leaf, Parameter):
                key.append(leaf.spec)
            elif leaf is None or isinstance(leaf, Integers):
                key.append(leaf.__class__)
            else:
                return None
    return tuple(key)


def _taken_apart(function: Any) -> tuple[Any, Any]:
    """A function, and the object whose method it is."""
    return (function.__func__, function.__self__) if isinstance(function, MethodType) else (function, None)
