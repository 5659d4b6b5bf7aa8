"""Lists of expressions that are checked once, for what reads the same list many times."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from typing import Any

from edbatch.errors import EdBatchError
from edbatch.graph.columns import Columns
from edbatch.graph.expression import Expression
from edbatch.graph.record import entries_of, graph_of, to_node, to_operand
from edbatch.graph.spec import Spec


class ExpressionList(tuple[Expression, ...]):
    """Expressions of one graph and one shape, as a tuple; recording `attention` over it costs the same for any length.

    Functions of lists take any list. Where the same one is read again and again, as the keys are at every step of a
    decoder, this one is gone through once, and not at every call.

    Args:
        xs: expressions of one shape; parameters, numbers and arrays become some. At least one.

    Raises:
        EdBatchError: there is none, or they are of several shapes, dtypes or graphs.

    Example:
        >>> import edbatch as eb
        >>> with eb.Graph():
        ...     keys = eb.ExpressionList(eb.input([1.0, x]) for x in (0.0, 5.0))
        ...     print(eb.attention(eb.ones(2), keys, keys).value().round(2))
        [1. 4.86]
    """

    graph: Columns
    spec_of_each: Spec  # and not `spec`, by which recording functions know an operand
    ids: list[int]

    def __new__(cls, xs: Iterable[Any]) -> ExpressionList:
        """Check them."""
        return listed("ExpressionList", xs)


def listed(name: str, xs: Iterable[Any], graph: Columns | None = None) -> ExpressionList:
    """Expressions of one shape, for `name`; an `ExpressionList` of the `graph` (None: of any) is itself."""
    if isinstance(xs, ExpressionList) and graph in (None, xs.graph):
        return xs
    nodes = xs if xs.__class__ is list else entries_of(xs)
    if not nodes:
        once = "" if isinstance(xs, Sized) else "; a generator can be read once"
        raise EdBatchError(f"{name}([]): expected at least one expression{once}")
    first = nodes[0]
    kind, of, spec = first.__class__, getattr(first, "graph", None), getattr(first, "spec", None)
    fits = isinstance(first, Expression) and graph in (None, of)
    if not fits or not all([x.__class__ is kind and x.graph is of and x.spec is spec for x in nodes]):  # noqa: C419
        nodes = _converted(name, nodes, graph_of(name, nodes) if graph is None else graph)
    found: ExpressionList = tuple.__new__(ExpressionList, nodes)
    found.graph, found.spec_of_each, found.ids = nodes[0].graph, nodes[0].spec, [x.id for x in nodes]
    return found


def _converted(name: str, given: list[Any], graph: Columns) -> list[Expression]:
    operands = [to_operand(name, graph, x, shared=False) for x in given]
    graph_of(name, [x for x in operands if isinstance(x, Expression)])
    nodes = [to_node(graph, x) for x in operands]
    for at, x in enumerate(nodes):
        if x.graph is not graph:
            raise EdBatchError(f"{name}: operand {at} of a list is an expression of another graph")
        if x.spec is not nodes[0].spec:
            both = nodes[0].spec, x.spec
            what, (first, other) = "shape", map(str, both)
            if both[0].shape == both[1].shape:
                what, (first, other) = "dtype", (str(spec.dtype) for spec in both)
            raise EdBatchError(
                f"{name}([...]): expected expressions of one {what}, got {first} at 0 and {other} at {at}"
            )
    return nodes
