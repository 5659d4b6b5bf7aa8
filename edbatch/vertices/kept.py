"""Recordings of vertex functions, kept for later calls while nothing that they depend on has changed."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from types import FunctionType, MethodType
from typing import Any
from weakref import ref

from edbatch.base.exclusive import lock
from edbatch.graph.cell.tree import flatten
from edbatch.graph.columns import Columns
from edbatch.graph.function_state import function_state
from edbatch.graph.guard import Held, all_hold
from edbatch.graph.integers import Integers
from edbatch.graph.model.parameters import Parameter
from edbatch.vertices.automaton import Automaton
from edbatch.vertices.column import Column

MOST_KEYS = 64
MOST_STATES = 4  # of what functions depend on
LONGEST_WAIT = 6

Functions = tuple[Callable[..., Any], ...]


class Kept:
    """The recordings in one state of all that functions depend on.

    Attributes:
        guards: of the functions, and of the cells and replayed functions that they call.
    """

    def __init__(self, guards: list[Held]) -> None:
        self.guards: dict[Any, Held] = dict(enumerate(guards))
        self.automaton = Automaton(len(guards))


class Store:
    """The recordings for inputs of some specs, by state, the latest last.

    A state is kept when calls have come twice that no other is right for, then 4 times, up to 64 times: looking for
    what functions depend on takes longer than recording them.
    """

    def __init__(self) -> None:
        self.states: list[Kept] = []
        self._made = self._missed = 0

    def find(self, functions: Functions, names: list[str]) -> Kept | None:
        """The recordings that are right now; None if nothing is kept of this call."""
        for one in self.states:
            if all_hold(one.guards.values()):
                return one
        with lock:
            self._missed += 1
            if self._missed < 2 ** min(1 + self._made, LONGEST_WAIT):
                return None
            self._made, self._missed = self._made + 1, 0
        guards = [_guard(name, *_taken_apart(function)) for name, function in zip(names, functions, strict=True)]
        if any(guard.is_over for guard, _, _ in guards):
            return None
        made = Kept(guards)
        self.states = [*self.states, made][-MOST_STATES:]
        return made

    def forget(self, kept: Kept) -> None:
        """Keep it no more: it was not right."""
        self.states = [one for one in self.states if one is not kept]


class Stores(dict[Hashable, Store]):
    """By owners, options, and specs of inputs. Copies start anew."""

    def of(self, functions: Functions, base: Columns, inputs: list[Any]) -> Store | None:
        """The one for a call; None if it cannot be said what that depends on."""
        options = base.options
        told: list[Any] = [
            base.dtype, base.expression_class, base.inlines, options.variant, options.training, options.trace_lines
        ]  # fmt: skip
        for function, owner, given in zip(*zip(*map(_taken_apart, functions), strict=True), inputs, strict=True):
            if function.__class__ is not FunctionType:
                return None
            told += (id(function), id(owner))
            leaves, structure = flatten(given)
            told.append(structure)
            for leaf in leaves:
                if isinstance(leaf, Column):
                    told.append((leaf.spec, leaf.view))
                elif isinstance(leaf, Parameter):
                    told.append(leaf.spec)
                elif leaf is None or isinstance(leaf, Integers):
                    told.append(leaf.__class__)
                else:
                    return None
        found = None if options.check else self.get(key := tuple(told))
        if found is None and not options.check:
            if len(self) >= MOST_KEYS:
                self.clear()
            found = self.setdefault(key, Store())
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return Stores, ()


def _taken_apart(function: Any) -> tuple[Any, Any]:
    """A function, and the object whose method it is."""
    return (function.__func__, function.__self__) if isinstance(function, MethodType) else (function, None)


def _guard(name: str, function: Any, owner: Any) -> Held:
    try:
        held = ref(function if owner is None else owner)
    except TypeError:  # an owner with slots
        return function_state(name, function, owner), lambda: None, None
    return function_state(name, function, owner), held, None
