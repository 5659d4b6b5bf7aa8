"""The graph that a program in DyNet's style records into without naming it: opened, renewed, computed anew."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

import edbatch as eb
from edbatch.errors import EdBatchError
from edbatch.graph.columns import current_graph
from edbatch.graph.expression import Expression
from edbatch.graph.marks import Mark, mark, take_back
from edbatch.graph.opened import graphs

STALE = "Stale Expression (created before renewing the Computation Graph)."


class DynetError(EdBatchError, RuntimeError):
    """What DyNet raises a RuntimeError for."""


class DynetIndexError(EdBatchError, IndexError):
    """What DyNet raises an IndexError for."""


class DynetTypeError(EdBatchError, TypeError):
    """What DyNet, or Python, raises a TypeError for."""


class DynetOverflowError(EdBatchError, OverflowError):
    """What DyNet raises an OverflowError for."""


class _Stale(list[int]):
    """The column of types of a graph that was renewed: recording appends to it, and is refused."""

    def append(self, _: Any) -> NoReturn:
        raise DynetError(STALE)

    extend = append


class Implicit:
    """The implicit graph and what is known of it.

    Attributes:
        handle: the class of its expressions.
        policy: of the graphs that are opened from now on, by name; None: EdBatch decides.
        version: how often it was renewed.
        settable: by the id of its node, the array of an input that may be set.
        outdated: whether one was set after it had been read.
        goes_back: whether there was a way back through the last graph: then what runs keeps what that will read.
        checkpoints: of each how far the graph was, and the class of expressions since.
    """

    handle: type[Any]

    def __init__(self) -> None:
        self.graph: Any = None
        self.policy: str | None = None
        self.version = 0
        self.settable: dict[int, np.ndarray] = {}
        self.outdated = False
        self.goes_back = False
        self._went_back = False
        self.checkpoints: list[tuple[Mark, Any]] = []

    def opened(self) -> Any:
        """The graph, which is opened before it is first used, and remains open."""
        if self.graph is None:
            self.graph = eb.Graph(self.policy)
            self.graph.handle, self.graph.repeatable = self.handle, True
            self.graph.__enter__()
        return self.graph

    def expect(self) -> None:
        """Have a graph open, whichever it is."""
        if self.graph is None:
            self.recorded_into()

    def recorded_into(self) -> Any:
        """Where inputs go: the innermost graph that is open, which may be one of EdBatch's or the body of a cell."""
        return self.opened() if graphs.innermost() is None else current_graph()

    def renew(self, kind: type[Any] | None = None) -> None:
        """Begin anew, with expressions of a kind: those of before are refused from now on."""
        self.version += 1
        self._forget()
        old = self.graph
        if old is None:
            self.opened()
        elif old.n:
            self.graph = old.successor(STALE)
            self.graph.first_draw = self.graph.next_draw = -1  # masks are of each graph's own
            old.types = _Stale()
        self.graph.handle = kind or self.handle

    def close(self) -> None:
        """Leave the graph open no longer; the next use opens another."""
        self._forget()
        graph, self.graph = self.graph, None
        if graph is not None:
            graph.successor(STALE).__exit__(None, None, None)
            graph.types = _Stale()

    def compute(self, recalculate: bool = False) -> None:
        """Run what is pending; once more, all of it, if something was set since."""
        if recalculate or self.outdated:
            self.recalculate()
        self.graph.run(saving=self.goes_back)

    def go_back(self, expression: Expression, gradient: Any) -> None:
        """Compute the gradients of an expression."""
        self.goes_back = self._went_back = True
        if self.outdated or self.graph.is_behind:
            self.recalculate()
        self.graph.backward(expression, gradient)

    def recalculate(self) -> None:
        """Have everything computed once more, with inputs and parameters as they are now, when it is next read."""
        self.outdated = False
        self.graph.begin_again(self.settable)

    def checkpoint(self) -> None:
        """Remember how far the graph is: expressions that are made from now on are of a class of their own."""
        graph = self.opened()
        since = graph.handle.of_its_own()
        self.checkpoints.append((mark(graph, since), since))

    def revert(self) -> None:
        """Go back to the last checkpoint: expressions of the class that was made then are refused from now on."""
        if not self.checkpoints:
            raise DynetError("cg_revert: there is no checkpoint to go back to")
        to, since = self.checkpoints.pop()
        since.refuse()
        self.settable = {node: array for node, array in self.settable.items() if node < to.n}
        take_back(self.graph, to)

    def _forget(self) -> None:
        self.goes_back, self._went_back = self._went_back, False
        self.settable.clear()
        self.checkpoints.clear()
        self.outdated = False


implicit = Implicit()
