"""The graph that a program in DyNet's style records into without naming it: opened, renewed, computed anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.errors import EdBatchError
from edbatch.graph.expression import Expression
from edbatch.graph.opened import graphs

STALE = "Stale Expression (created before renewing the Computation Graph)."


class DynetError(EdBatchError, RuntimeError):
    """What DyNet raises a RuntimeError for."""


class DynetIndexError(EdBatchError, IndexError):
    """What DyNet raises an IndexError for."""


class DynetTypeError(EdBatchError, TypeError):
    """What DyNet, or Python, raises a TypeError for."""


class _Graph(eb.Graph):
    """A graph whose pending nodes run with the parameters that there are then, as in DyNet."""

    __slots__ = ()

    def note_write(self, time: int) -> None:
        """Take no note of writes: what was recorded before them may run after them."""


class Implicit:
    """The implicit graph and what is known of it."""

    expression_class: type[Any]

    def __init__(self) -> None:
        self.graph: Any = None
        self.policy: str | None = None  # of the graphs that are opened from now on, by name; None: EdBatch decides
        self.version = 0  # how often it was renewed
        self.settable: dict[int, np.ndarray] = {}  # by the id of its node, the array of an input that may be set
        self.outdated = False  # whether one was set after it had been read
        # Whether `backward` was called in the last graph: then what runs saves what that will read.
        self.goes_back = self._went_back = False

    def opened(self) -> Any:
        """The graph, which is opened before it is first used, and remains open."""
        if self.graph is None:
            self.graph = _Graph(self.policy, expression_class=self.expression_class)
        if not self.graph._entered:  # or an interrupt came between the two
            self.graph.__enter__()
        return self.graph

    def recorded_into(self) -> Any:
        """Where inputs go: the innermost graph that is open, which may be one of EdBatch's or the body of a cell."""
        return self.opened() if graphs.innermost() is None else eb.current_graph()

    def renew(self, check_nan: bool = False) -> None:
        """Begin anew: expressions of before are refused from now on."""
        self.version += 1
        self._forget()
        if self.opened().n or check_nan:
            graph = self.graph = self.graph.successor(STALE)
            graph.first_draw = graph.next_draw = -1  # masks are of each graph's own
            graph._check_nan = check_nan

    def close(self) -> None:
        """Leave the graph open no longer; the next use opens another."""
        self._forget()
        if self.graph is not None:
            self.graph = self.graph.successor(STALE)
            self.graph.__exit__(None, None, None)
            self.graph = None

    def compute(self, recalculate: bool = False) -> None:
        """Run what is pending; and once more all that has run, if that is asked for or an input was set since."""
        if recalculate or self.outdated:
            self._reset()
        self.graph.run(saving=self.goes_back)

    def go_back(self, expression: Expression, gradient: Any) -> None:
        """Compute the gradients of an expression, with the inputs and parameters that there are now."""
        self.goes_back = self._went_back = True
        if self.outdated or self.graph.is_behind:
            self._reset()
        self.graph.backward(expression, gradient)

    def _reset(self) -> None:
        self.outdated = False
        self.graph.reset(self.settable, self.goes_back)

    def _forget(self) -> None:
        self.goes_back, self._went_back, self.outdated = self._went_back, False, False
        self.settable.clear()


implicit = Implicit()


def renew_cg(immediate_compute: bool = False, check_validity: bool = False, autobatching: Any = None) -> None:
    """Begin a new graph; expressions of the one before are refused from now on.

    With `check_validity` the first batch whose result has a NaN is an error that names the function; the other
    arguments are no matter here.
    """
    implicit.renew(check_validity)


def close_cg() -> None:
    """Leave the implicit graph open no longer, for programs that go on with EdBatch's own; not in DyNet."""
    implicit.close()


def forward(expressions: Sequence[Any], recalculate: bool = False) -> None:
    """Compute several expressions."""
    for expression in expressions:
        expression.forward(recalculate)
        recalculate = False


def print_text_graphviz() -> None:
    """Print the operations of the graph, in the language of Graphviz, and which are whose operands; runs nothing.

    Inputs, parameters and views of other values are none. `eb.Graph.draw` makes a picture.
    """
    graph = implicit.opened().typed_graph()
    lines = [f'  N{node} [label="{graph.names[type]}"];' for node, type in enumerate(graph.types.tolist())]
    for node in range(len(graph)):
        operands = graph.operands[graph.indptr[node] : graph.indptr[node + 1]].tolist()
        lines += [f"  N{operand} -> N{node};" for operand in operands]
    print("\n".join(["digraph G {", *lines, "}"]))


TABLE = {function.__name__: function for function in (renew_cg, close_cg, forward, print_text_graphviz)}
