"""Marks in a graph, to which it goes back: what was recorded since is forgotten, as far as it has not run."""

from __future__ import annotations

from typing import NamedTuple

from edbatch.graph.columns import Columns
from edbatch.graph.expression import Expression
from edbatch.graph.lines import LinedTypes
from edbatch.graph.views import NODE_MASK


class Mark(NamedTuple):
    """How far a graph was.

    Attributes:
        n: how many nodes there were.
        taken: how many the runtime had taken over.
        chunks, inputs: how many of both there were.
        handle: the class of its expressions.
    """

    n: int
    taken: int
    chunks: int
    inputs: int
    handle: type[Expression]


def mark(graph: Columns, handle: type[Expression]) -> Mark:
    """Note how far a graph is; its expressions are of another class from now on.

    Args:
        graph: of single expressions.
        handle: the class, by which what is recorded since can be told, and refused.
    """
    graph.flush_arrays()
    graph.close_chunk()
    found = Mark(graph.n, graph.n - graph.waiting, len(graph.chunks), len(graph.inputs), graph.handle)
    _handle(graph, handle)
    return found


def take_back(graph: Columns, to: Mark) -> None:
    """Forget what was recorded since a mark, and has not run; what has keeps its memory, and its ids.

    Nothing may use an expression of it any more: its id may be that of another node.
    """
    for array_graph in graph.held_arrays():
        array_graph.forget()
    taken = graph.n - graph.waiting
    has_run = taken > to.taken
    del graph.chunks[0 if has_run else to.chunks :]
    if not has_run:
        del graph.inputs[to.inputs :]
    graph.types, graph.args = LinedTypes() if isinstance(graph.types, LinedTypes) else [], []
    graph.n = taken if has_run else to.n
    graph.constants = {key: found for key, found in graph.constants.items() if found[0] & NODE_MASK < to.n}
    _handle(graph, to.handle)


def _handle(graph: Columns, handle: type[Expression]) -> None:
    graph.handle = handle
    for array_graph in graph.held_arrays():
        array_graph.handle = handle.of_arrays
