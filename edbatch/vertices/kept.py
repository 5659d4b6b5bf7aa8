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
LONGEST_WAIT = 64

Functions = tuple[Callable[..., Any], ...]


class VertexState(GuardedState):
    """The recordings in one state of all that functions depend on."""

    def __init__(self, functions: Functions, names: list[str]) -> None:
        super().__init__()
        for name, (function, owner) in zip(names, map(_taken_apart, functions), strict=True):
            held = Identity(function if owner is None else owner).held
            self.guards[len(self.guards)] = function_state(name, function, owner), held, None
        self.automaton = Automaton(len(functions))


class VertexStates:
    """The recordings for inputs of some specs, by state, the latest last.

    A state is kept at the second call that no other is right for, the fourth, the eighth, and so on: looking for what
    functions depend on takes longer than recording them.
    """

    def __init__(self) -> None:
        self._states: list[VertexState] = []
        self._missed = 0

    def find(self, functions: Functions, names: list[str]) -> VertexState | None:
        """The recordings that are right now; None if nothing is kept of this call."""
        with lock:
            found = holding(self._states)
            if found is not None:
                return found
            self._missed += 1
            if self._missed < 2 or self._missed % min(1 << (self._missed.bit_length() - 1), LONGEST_WAIT):
                return None
        made = VertexState(functions, names)
        if any(guard.is_over for guard, _, _ in made.guards.values()):
            return None
        self._states = [*self._states, made][-MOST_STATES:]
        return made

    def forget(self, state: VertexState) -> None:
        """Keep it no more: it was not right."""
        self._states = [one for one in self._states if one is not state]


class Stores(dict[Hashable, VertexStates]):
    """By owners, options, and specs of inputs. Copies start anew."""

    def of(self, functions: Functions, base: Columns, inputs: list[Any]) -> VertexStates | None:
        """Those for a call; None if it cannot be said what that depends on."""
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
        if (known := tuple(key)) not in self and len(self) >= MOST_KEYS:
            self.clear()
        return self.setdefault(known, VertexStates())

    def __reduce__(self) -> tuple[Any, ...]:
        return Stores, ()


def _taken_apart(function: Any) -> tuple[Any, Any]:
    """A function, and the object whose method it is."""
    return (function.__func__, function.__self__) if isinstance(function, MethodType) else (function, None)
