"""Guards: whether what a function depends on besides its arguments is as it was when the function was traced.

A guard is a list of steps. Each reads one thing - an attribute, an item, a global - of what an earlier step has read,
and knows what was there. All begin at three roots: the owner, the function, and what is given by keyword. So a guard
holds neither owners nor parameters, and serves a copy of the owner, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple, TypeVar
from weakref import ref

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.graph.recorder import first_change
from edbatch.graph.step import ANY, ATOMS, MISSING, OWNER, READ, ROOTS, Alias, Read, Step, is_atom, text_of, token


class Change(NamedTuple):
    """Something that has changed: its name, what it was as text (empty if that is long), and what it is now."""

    path: str
    old: str
    new: Any

    @property
    def is_number(self) -> bool:
        """Whether there is a number now."""
        return isinstance(self.new, int | float | complex | np.number) and not isinstance(self.new, bool)

    def __str__(self) -> str:
        return text_of(self.new) or f"another {type(self.new).__name__}"


class Guard:
    """Whether all that a function depends on is as it was.

    Args:
        of: what was traced, for errors.
        steps, values: what is compared, and what was there.
        gone: what has ended of what was there: what has its address then is something else.

    Attributes:
        watched: attributes of the owner that calls can look at by themselves; numbers, flags and texts first.
        looks: those that every call looks at, so that they may change between two calls.
    """

    def __init__(self, of: str, function: Any, steps: list[Step], values: list[Any], gone: list[Any]) -> None:
        self.of = of
        self.looks: frozenset[str] = frozenset()
        self._function = function
        self._steps = steps
        self._gone = gone
        found = list(zip(steps, values, strict=True))
        self._remember(values)
        own = [at for at, step in enumerate(steps, len(ROOTS)) if step[:3] == (Read.ATTRIBUTE, OWNER, "__dict__")]
        self._own = own[0] if own else -1
        atoms = {step.key for step, value in found if value.__class__ in ATOMS}
        names = [s.key for s, value in found if s.holder == self._own and (value is not MISSING or s.key in atoms)]
        self.watched = sorted(names, key=lambda name: name not in atoms)

    def _remember(self, values: list[Any]) -> None:
        """Note where values are, so that what is the same object is soon found to be as it was."""
        #: What lives on, so that nothing else gets its address.
        self._held = [value for value in values if is_atom(value)]
        self._addresses = [_address(step, value) for step, value in zip(self._steps, values, strict=True)]

    @property
    def is_over(self) -> bool:
        """Whether something that it compares with is no more, so that it will never hold again."""
        return bool(self._gone)

    def holds(self, owner: Any, static: Any = None) -> bool:
        """Whether nothing has changed."""
        if self._gone:
            return False
        roots = owner, self._function, static
        if first_change is not None and first_change(self._steps, self._addresses, roots) < 0:
            return True
        at, values = self._compared(roots)
        if at < 0:
            self._remember(values)
        return at < 0

    def change(self, owner: Any, static: Any = None, besides: frozenset[str] = frozenset()) -> Change | None:
        """The first thing that has changed; `besides`: attributes of the owner that may be others."""
        at, values = self._compared((owner, self._function, static), besides)
        return None if at < 0 else Change(self._steps[at].path, self._steps[at].old, values[at])

    def _compared(self, roots: tuple[Any, ...], besides: frozenset[str] = frozenset()) -> tuple[int, list[Any]]:
        """The first step that finds something else, or -1; and what all up to it have found."""
        slots: list[Any] = list(roots)
        for at, (kind, holder, key, _, want, _) in enumerate(self._steps):
            held = slots[holder]
            if held is ANY:  # part of what may be another
                slots.append(ANY)
                continue
            value = READ[kind](held, key)
            slots.append(value)
            if holder == self._own and key in besides:
                if id(value) != self._addresses[at]:
                    slots[-1] = ANY
            elif (kind >= Read.SIZE or id(value) != self._addresses[at]) and _differs(value, kind, want, slots):
                return at, slots[len(ROOTS) :]
        return -1, slots[len(ROOTS) :]


def _differs(value: Any, kind: Read, want: Any, slots: list[Any]) -> bool:
    """Whether a value has another token than a step."""
    if isinstance(want, Alias):
        return value is not slots[want.slot]
    if isinstance(want, type):
        return type(value) is not want
    return want is not ANY and token(value, kind) != want


def _address(step: Step, value: Any) -> int:
    """What the extension in C compares with: an address, or of a size the size."""
    if step.kind == Read.SIZE:
        return int(value)
    return -1 if step.token is ANY else 0 if value is MISSING else id(value)


#: A guard that a call has found to hold, its roots, and attributes of the owner that later calls look at by themselves.
Noted = tuple[Guard, Any, Any, frozenset[str]]

#: A guard that is kept, what gives its owner while that is there, and what was given by keyword.
Held = tuple[Guard, Callable[[], Any], Any]


def by_owner(kept: dict[int, Any], owner: Any, make: Callable[[Callable[[], Any]], Any], place: str) -> Any:
    """What is kept of an owner, by its `id`, as long as that is there; `make` makes it of what gives the owner.

    Raises:
        EdBatchError: nobody can be told when the owner is no more.
    """
    key = id(owner)
    if key not in kept:
        try:
            held = ref(owner, partial(kept.pop, key))  # in C: no interrupt is lost in it
        except TypeError:
            kind = type(owner).__name__
            raise EdBatchError(
                f"{place}: expected an object with a __dict__, or '__weakref__' among the __slots__ of {kind}"
            ) from None
        kept.setdefault(key, make(held))
    return kept[key]


class GuardedState:
    """What functions, and what they called, depended on when something was recorded: right while that holds."""

    def __init__(self) -> None:
        self.guards: dict[Any, Held] = {}

    def holds(self) -> bool:
        """Whether nothing has changed."""
        for guard, owner_of, static in self.guards.values():
            owner = owner_of()
            if owner is None or not guard.holds(owner, static):
                return False
        return True

    def note(self, graph: Any, besides: frozenset[str] | None = None) -> None:
        """Have a graph note it, see `Columns.note`."""
        for guard, owner_of, static in self.guards.values():
            if (owner := owner_of()) is not None:
                graph.note(guard, owner, static, besides)


S = TypeVar("S", bound=GuardedState)


def holding(states: list[S]) -> S | None:
    """The state that holds, which becomes the last of them."""
    found = next((one for one in states if one.holds()), None)
    if found is not None:
        states.remove(found)
        states.append(found)
    return found


def expect_unchanged(guards: Iterable[Noted]) -> None:
    """Check that what calls depend on is as it was at the first of them; an error names what is not."""
    for guard, owner, static, besides in guards:
        change = None if guard.holds(owner, static) else guard.change(owner, static, besides)
        if change is not None:
            path = "self" + change.path.rpartition(".__self__")[2] if ".__self__." in change.path else change.path
            raise EdBatchError(
                f"{guard.of} reads {path}, which was {change.old or 'something else'} when it was first called "
                f"in this graph, and is {change} now: calls in between may have been recorded with the wrong one. "
                "Pass it as an argument, or as a keyword-only parameter (`def f(x, *, k)`), or change it outside of "
                "the graph's `with` block"
            )
