"""Vertex functions: `edbatch.vertex`, and what calling one does."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from edbatch.errors import EdBatchError, shown
from edbatch.graph.cell.trace import Trace
from edbatch.graph.columns import Columns, current_graph
from edbatch.graph.expression import Expression
from edbatch.graph.expression_array import ExpressionArray
from edbatch.graph.function_state import name_of
from edbatch.vertices.column import columns_of
from edbatch.vertices.input_graph import InputGraph
from edbatch.vertices.kept import Stores
from edbatch.vertices.run import Run
from edbatch.vertices.vertices import Vertices


class VertexFunction:
    """One vertex function, or several for vertices of several kinds; see `edbatch.vertex`.

    Attributes:
        functions: by kind.
    """

    def __init__(self, functions: tuple[Callable[..., Any], ...], stores: Stores | None = None) -> None:
        self.functions = functions
        self._stores = Stores() if stores is None else stores
        if len(functions) == 1:
            update_wrapper(self, functions[0])

    def __get__(self, owner: Any, kind: type | None = None) -> VertexFunction:
        """A method's, bound to its object."""
        if owner is None:
            return self
        return VertexFunction(tuple(function.__get__(owner, kind) for function in self.functions), self._stores)

    def __repr__(self) -> str:
        return f"vertex function {', '.join(map(name_of, self.functions))}"

    def __call__(self, graph: InputGraph, *inputs: Any) -> Vertices:
        """Record what all vertices compute.

        Args:
            graph: which vertices there are.
            inputs: what vertices pull, kind by kind: an entry for each vertex of the kind, in their order; integers,
                numbers (rows are inputs) or an `ExpressionArray`, or one expression for all, or nestings of such in
                tuples and dictionaries. None, or nothing, for kinds that pull nothing.

        Raises:
            EdBatchError: a vertex has a kind that there is no function for, or another number of children than its
                function gathers; inputs are not as many as vertices, or out of range; called in a cell or in another
                vertex function; or what the function raises, with the vertex.
        """
        if not isinstance(graph, InputGraph):
            raise EdBatchError(f"{self!r}: expected an eb.InputGraph, got {shown(graph)}")
        if len(inputs) > len(self.functions):
            raise EdBatchError(
                f"{self!r}: expected the input of each kind, {len(self.functions)} at most, got {len(inputs)}; several "
                "inputs of one kind are given as a tuple"
            )
        base = self._base(inputs)
        counts = graph._ranked(len(self.functions))[0]
        names = list(map(name_of, self.functions))
        columns: list[Any] = [None] * len(names)
        for kind, given in enumerate(inputs):
            of_kind = f" of kind {kind}" if len(names) > 1 else ""
            if given is not None:
                columns[kind] = columns_of(base, f"{names[kind]}, inputs{of_kind}", given, int(counts[kind]))
        recordings, of_vertices, results = Run(self.functions, names, graph, base, columns).record(self._stores)
        return Vertices(base, graph, of_vertices, recordings, results)

    def _base(self, inputs: tuple[Any, ...]) -> Columns:
        """The graph of the inputs' expressions, else the current one."""
        given: Any = _first_expression(inputs)
        base: Any = current_graph() if given is None else given.graph
        if isinstance(given, ExpressionArray):
            base = base.base
        if isinstance(base, Trace):
            raise EdBatchError(f"{self!r} is called in a cell, whose calls are one node; call it outside")
        if base.base is not None:
            raise EdBatchError(
                f"{self!r} is called in a vertex function; call it outside, or make it a kind of its own"
            )
        return base


def _first_expression(given: Any) -> Expression | None:
    """The first in a nesting of tuples and dictionaries; what is listed is all of one kind."""
    if isinstance(given, Expression):
        return given
    if isinstance(given, tuple | dict):
        parts = given.values() if isinstance(given, dict) else given
        return next((found for part in parts if (found := _first_expression(part)) is not None), None)
    return _first_expression(given[0]) if isinstance(given, list) and given else None


def vertex(*functions: Any) -> VertexFunction:
    """Make a function of a vertex one of all vertices of an input graph: a decorator, after Cavs (section 3).

    Where structures are at hand as arrays, a model need not walk over them: it says what one vertex computes, and is
    called once with the structures of a whole mini-batch. What is recorded are the same nodes as by a recursive
    function that is called for each vertex, at some nanoseconds each. Make it once and call it often: what it has
    recorded twice is kept while nothing that it depends on has changed (as of a cell, see `edbatch.cell`); what is
    random, or reads a value, is recorded at each call.

    The function takes a `Vertex` v. `v.gather(k)` is what its child number k has scattered, `v.gather()` the list of
    what all have; `v.pull()` is its external input; `v.scatter(...)` gives results to those that gather the vertex,
    `v.push(...)` to the caller. It may use all functions of EdBatch, cells and dropout, and what is around it; it is
    called once for each kind and number of children, so `if v.n_children == 2:` may decide, and values may not. What it
    computes of nothing of the vertex is computed once for all.

    Args:
        functions: one, or several: then a vertex of kind 0 takes the first, one of kind 1 the second. Methods are given
            as they are bound: `eb.vertex(self.leaf, self.inner)`.

    Returns:
        What is called as `function(graph, *inputs)` with an `InputGraph` and, kind by kind, what its vertices pull: an
        entry for each of them (integers, numbers, an `ExpressionArray`; or one expression for all; or nestings of such
        in tuples and dictionaries), None for a kind that pulls nothing. It gives `Vertices`, with what all scattered
        and pushed.

    Raises:
        EdBatchError: something is no function. When called: a vertex has a kind without a function, no such child as it
            gathers, or one that it does not gather; an input is out of range, or not of as many entries as there are
            vertices; shapes do not fit. The vertex is named.

    Example:
        >>> import numpy as np, edbatch as eb
        >>> model = eb.ParameterCollection(seed=0)
        >>> embed, W = model.add_lookup_parameters((10, 4)), model.add_parameters((4, 8))
        >>> @eb.vertex
        ... def leaf(v):
        ...     v.scatter(eb.lookup(embed, v.pull()))
        >>> @eb.vertex
        ... def inner(v):
        ...     h = eb.tanh(W @ eb.concatenate([v.gather(0), v.gather(1)]))
        ...     v.scatter(h)
        ...     v.push(eb.sum(h))
        >>> trees, words = eb.InputGraph.of_tuples([((3, 7), (5, 2)), (1, 3)])
        >>> with eb.Graph() as graph:
        ...     out = eb.vertex(leaf, inner)(trees, words)
        ...     of_trees = out.scattered[trees.roots]
        ...     loss = eb.sum(out.pushed)
        >>> len(out), len(of_trees), out.pushed_by, out.pushed.shape
        (10, 2, array([2, 5, 6, 9]), ())
        >>> loss.backward()
        >>> graph.report().batches  # look-ups, twice a composition, sums
        9
    """
    flat: list[Any] = []
    stores = None
    for function in functions:
        flat += function.functions if isinstance(function, VertexFunction) else [function]
        if stores is None and isinstance(function, VertexFunction):
            stores = function._stores
    for function in flat:
        if not callable(function) or isinstance(function, type):
            raise EdBatchError(f"vertex: expected functions of a vertex, got {shown(function)}")
    if not flat:
        raise EdBatchError("vertex(): expected at least one function")
    return VertexFunction(tuple(flat), stores)
