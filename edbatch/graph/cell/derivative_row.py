"""The row that a derivative computes: where each of its values lies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple, TypeVar

from edbatch.graph.cell.body import Body, Value, spec_of_value, with_nodes
from edbatch.graph.spec import Spec

T = TypeVar("T")


class Place(NamedTuple):
    """Where a value lies: the column it begins at in a row, and its spec."""

    column: int
    spec: Spec


def row_of_gradients(body: Body, given: Mapping[int, int]) -> tuple[Body, int, list[Place | Value]]:
    """Lay a body's outputs side by side.

    Args:
        given: arguments that are no outputs even if they are returned, with what they are called.

    Returns:
        The body with outputs that are each at a column of their own; the row's entries; and per output of the body as
        it was its place, or the value among `given` that it is.
    """
    outputs = tuple(dict.fromkeys(value for value in body.outputs if value.node not in given))
    specs = [spec_of_value(body, value) for value in outputs]
    *columns, width = accumulate((spec.size for spec in specs), initial=0)
    found = dict(zip(outputs, map(Place, columns, specs), strict=True))
    places = [Value(given[value.node], value.view) if value.node in given else found[value] for value in body.outputs]
    return body._replace(outputs=outputs, columns=tuple(columns)), width, places


def without_unread(body: Body, given: Sequence[T]) -> tuple[Body, tuple[T, ...]]:
    """The body without arguments that nothing reads, and what remains of `given`, one per argument.

    Lists stay: they say how many elements there are.
    """
    read = {value.node for node in body.nodes for value in node.operands} | {value.node for value in body.outputs}
    read |= {number for number, spec in enumerate(body.arguments) if spec.each}
    chosen = [number for number in range(len(body.nodes)) if number in read or number >= len(body.arguments)]
    kept = [number for number in chosen if number < len(body.arguments)]
    body = with_nodes(body, chosen)
    body = body._replace(arguments=tuple(node.type.out for node in body.nodes[: len(kept)]))
    return body, tuple(given[number] for number in kept)
