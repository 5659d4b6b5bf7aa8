"""The implicit graph, as DyNet's programs ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from edbatch.dynet.implicit import implicit
from edbatch.dynet.validity import CheckedExpression


class ComputationGraph:
    """The implicit graph; `dy.cg()` is it."""

    def renew(
        self, immediate_compute: bool = False, check_validity: bool = False, autobatching: Any = None
    ) -> ComputationGraph:
        """As `renew_cg`."""
        return renew_cg(immediate_compute, check_validity, autobatching)

    def version(self) -> int:
        """As `cg_version`."""
        return implicit.version

    def checkpoint(self) -> None:
        """As `cg_checkpoint`."""
        cg_checkpoint()

    def revert(self) -> None:
        """As `cg_revert`."""
        cg_revert()

    def forward(self) -> None:
        """Compute everything."""
        implicit.opened().run()

    inc_forward = forward

    def backward(self, expression: Any) -> None:
        """As of the expression."""
        expression.backward()

    def print_graphviz(self) -> None:
        """As `print_text_graphviz`."""
        print_text_graphviz()


_GRAPH = ComputationGraph()


def cg() -> ComputationGraph:
    """The implicit graph."""
    return _GRAPH


def renew_cg(
    immediate_compute: bool = False, check_validity: bool = False, autobatching: Any = None
) -> ComputationGraph:
    """Begin a new graph; expressions of the one before are refused from now on.

    Args:
        immediate_compute: changes nothing without `check_validity`: what is computed does not depend on when.
        check_validity: with `immediate_compute`, have every function compute its result at once, and raise a
            RuntimeError where that is not finite; slow, to find where a NaN begins.
        autobatching: no matter here, as everything is batched; `--dynet-autobatch` chooses how.
    """
    implicit.renew(CheckedExpression if immediate_compute and check_validity else None)
    return _GRAPH


def close_cg() -> None:
    """Leave the implicit graph open no longer, for programs that go on with EdBatch's own; not in DyNet."""
    implicit.close()


def cg_version() -> int:
    """How often the graph was renewed."""
    return implicit.version


def cg_checkpoint() -> None:
    """Remember how far the graph is, for `cg_revert`."""
    implicit.checkpoint()


def cg_revert() -> None:
    """Go back to the last checkpoint: expressions made since are stale, and what has not run is forgotten."""
    implicit.revert()


def forward(expressions: Sequence[Any], recalculate: bool = False) -> None:
    """Compute several expressions."""
    for expression in expressions:
        expression.forward(recalculate)
        recalculate = False


def values(expressions: Sequence[Any], recalculate: bool = False) -> list[Any]:
    """The values of several expressions, each as `value()` gives it."""
    forward(expressions, recalculate)
    return [expression.value() for expression in expressions]


def npvalues(expressions: Sequence[Any], recalculate: bool = False) -> list[np.ndarray]:
    """The values of several expressions as arrays."""
    forward(expressions, recalculate)
    return [expression.npvalue() for expression in expressions]


def print_text_graphviz() -> None:
    """Print the nodes of the graph, and which are whose operands."""
    graph = implicit.opened().typed_graph()
    print("digraph G {")
    for node in range(len(graph)):
        print(f'  N{node} [label="{graph.types[node]}"];')
    print("}")


def print_graphviz(**_: Any) -> None:
    """As `print_text_graphviz`."""
    print_text_graphviz()


def dump_cg() -> None:
    """As `print_text_graphviz`."""
    print_text_graphviz()
