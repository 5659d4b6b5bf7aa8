"""A second comparison of what recorded calls depend on, before their numbers are computed."""

from __future__ import annotations

from collections.abc import Iterable

from edbatch.errors import EdBatchError
from edbatch.graph.watch.getters import GONE, Get
from edbatch.graph.watch.guard import Guard

#: A guard that a call has found to hold, `get` of its owner's dictionary, and attributes of the owner that later calls
#: look at by themselves.
Noted = tuple[Guard, Get, frozenset[str]]


def expect_unchanged(guards: Iterable[Noted]) -> None:
    """Check that what calls depend on is as it was at the first of them.

    Raises:
        EdBatchError: a place holds something else; names it.
    """
    for guard, own, besides in guards:
        if guard.holds(own, besides):
            continue
        # What is in an object that is no more nobody can have changed.
        change = next((one for one in guard.changes(own, besides) if one.new is not GONE), None)
        if change is not None:
            raise EdBatchError(
                f"{guard.of} reads {change.path}, which was {change.old or 'something else'} when it was first called "
                f"in this graph, and is {change.now} now: calls in between may have been recorded with the wrong one. "
                "Pass it as an argument, or as a keyword-only parameter (`def f(x, *, k)`), or change it outside of "
                "the graph's `with` block"
            )
