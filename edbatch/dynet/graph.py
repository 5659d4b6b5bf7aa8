"""The implicit graph, as DyNet's programs ask for it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from edbatch.base.files import write_atomically
from edbatch.dynet.checked import integers
from edbatch.dynet.implicit import DynetError, implicit
from edbatch.dynet.inputs import inputTensorTranspose
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

    def forward(self, expression: Any = None) -> None:
        """Compute an expression, or everything; DyNet is given the number of a node."""
        if expression is None:
            implicit.opened().run()
        else:
            expression.forward()

    inc_forward = forward

    def forward_scalar(self, expression: Any) -> float:
        """The only entry of an expression's value; DyNet is given the number of a node."""
        found: float = expression.scalar_value()
        return found

    inc_forward_scalar = forward_scalar

    def forward_vec(self, expression: Any) -> list[float]:
        """All entries of an expression's value, column by column; DyNet is given the number of a node."""
        found: list[float] = expression.vec_value()
        return found

    inc_forward_vec = forward_vec

    def backward(self, expression: Any, full: bool = False) -> None:
        """As of the expression."""
        expression.backward(full)

    def inputMatrixLiteral(self, v: Sequence[float], d: tuple[int, int], batch_size: int = 1) -> Any:
        """As `inputTensorTranspose`."""
        return inputTensorTranspose(v, d, batch_size)

    def inputSparseTensor(self, idxs: Sequence[int], values: Sequence[float], d: Sequence[int]) -> Any:
        """Zeros but for some entries, whose numbers count column by column."""
        if len(idxs) != len(values):
            raise DynetError(f"inputSparseTensor: expected as many values as indices, got {len(values)}, {len(idxs)}")
        dense = np.zeros(int(np.prod(d)))
        dense[integers("inputSparseTensor: idxs", idxs)] = values
        return inputTensorTranspose(dense, d)

    def dump(
        self, filename: str = "", show_values: bool = True, show_gradients: bool = True, nan_check_only: bool = False
    ) -> None:
        """As `dump_cg`; a name may be one of bytes, as DyNet asks for."""
        dump_cg(os.fsdecode(filename), show_values, show_gradients, nan_check_only)

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


def _text() -> str:
    graph = implicit.opened().typed_graph()
    lines = [f'  N{node} [label="{graph.names[type]}"];' for node, type in enumerate(graph.types.tolist())]
    for node in range(len(graph)):
        operands = graph.operands[graph.indptr[node] : graph.indptr[node + 1]].tolist()
        lines += [f"  N{operand} -> N{node};" for operand in operands]
    return "\n".join(["digraph G {", *lines, "}"])


def print_text_graphviz() -> None:
    """Print the operations of the graph, in the language of Graphviz, and which are whose operands; runs nothing.

    Inputs, parameters and views of other values are none. `eb.Graph.draw` makes a picture.
    """
    print(_text())


def print_graphviz(compact: bool = False, show_dims: bool = True, expression_names: Any = None, **_: Any) -> None:
    """As `print_text_graphviz`; the arguments, which say what DyNet draws, are no matter here."""
    print_text_graphviz()


def dump_cg(
    filename: str = "", show_values: bool = True, show_gradients: bool = True, nan_check_only: bool = False
) -> None:
    """Write what `print_text_graphviz` prints to a file; print it, if none is named.

    Args:
        filename: of the file.
        show_values, show_gradients: no matter here: values and gradients are read of expressions.
        nan_check_only: refused.

    Raises:
        DynetError: with `nan_check_only`.
    """
    if nan_check_only:
        raise DynetError("dump_cg: renew_cg(immediate_compute=True, check_validity=True) finds where a NaN begins")
    if not filename:
        print_text_graphviz()
        return
    write_atomically(filename, _text() + "\n")
