"""Errors of a graph: of its memory, of what has run too late; and the lines where nodes were recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from edbatch.base.context_stack import leaving
from edbatch.errors import EdBatchError, MissingMemoryError
from edbatch.graph.node_type import NodeType
from edbatch.graph.views import NODE_MASK

if TYPE_CHECKING:
    from edbatch.runtime.evaluation import Evaluation

_SHOWN = 3  # lines


class graph_errors:
    """Translate a MemoryError into an error that tells the user to reduce the mini-batch.

    Args:
        fail: called with any exception: has the graph have no values.
    """

    __slots__ = ("_fail",)

    def __init__(self, fail: Callable[[BaseException], None] = lambda error: None) -> None:
        self._fail = fail

    def __enter__(self) -> None:
        """Nothing to do."""

    @leaving
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None:
            return
        if isinstance(error, MemoryError) and not isinstance(error, MissingMemoryError):
            missing = MissingMemoryError(
                f"this graph needs more memory than there is ({str(error) or 'none is left'}); expected smaller "
                "mini-batches"
            )
            self._fail(missing)
            raise missing from None
        self._fail(error)


def check_rows(rows: Any, nodes: np.ndarray, kind: int, graph: Evaluation, backward: bool = False) -> None:
    """Raise an error that names a type if there is a NaN in the rows of a batch.

    Args:
        nodes: those of the rows; backward: all of the type that gradients flow into.
    """
    bad = graph.table.backend.to_host((rows != rows).reshape(len(rows), -1).any(axis=1))
    if bad.any():
        where = _lines(graph, nodes if backward else nodes[bad])
        what = "the gradient" if backward else "a result"
        name, some = graph.table.bound[kind].type, f"{bad.sum()} of {len(bad)}"
        raise EdBatchError(f"NaN in {what} of {name} ({some} in its batch){where}")


def _lines(graph: Evaluation, nodes: np.ndarray) -> str:
    """What is put behind an error's text: the lines of some nodes, or how to get them."""
    if graph.recorded is None:
        return "; a graph opened under edbatch.options(trace_lines=True) says where it was recorded"
    found = list(dict.fromkeys(line for node in nodes[:1000].tolist() if (line := _line(graph, node)) is not None))
    more = f" and {len(found) - _SHOWN} other lines" if len(found) > _SHOWN else ""
    return f", recorded at {', '.join(found[:_SHOWN])}{more}" if found else ""


def _line(graph: Evaluation, node: int) -> str | None:
    """Of a part that a cell was split into, the line of what reads it: the cell's last part has the cell's node."""
    assert graph.recorded is not None
    seen = graph.nodes
    while node not in graph.recorded:
        starts, ends = seen.starts[: seen.n], seen.starts[: seen.n] + seen.counts[: seen.n]
        for place in np.flatnonzero((seen.args[: seen.n_args] & NODE_MASK) == node).tolist():
            users = np.flatnonzero((starts <= place) & (place < ends))
            if len(users) and users[0] != node:
                node = int(users[0])
                break
        else:
            return None
    return graph.recorded[node]


def outdated(graph: Evaluation, marks: Sequence[tuple[int, int]], before: Mapping[int, str]) -> dict[int, str]:
    """Of the nodes that run next, those that read, or depend on, a parameter that changed since they were recorded.

    Args:
        marks: how many nodes had been recorded when parameters were written to, and when that was.
        before: those that have run.

    Returns:
        By node the names of the parameters.
    """
    nodes, bound = graph.nodes, graph.table.bound
    found: dict[int, str] = {}
    begin = graph.done
    for end, time in marks:
        kinds = nodes.types[begin:end]
        for kind in np.unique(kinds).tolist():
            names = _written(bound[kind].type, time)
            if names:
                found.update(dict.fromkeys((begin + np.flatnonzero(kinds == kind)).tolist(), names))
        begin = end
    if not found and not before:
        return found
    known = {**before, **found}
    for node in range(graph.done, nodes.n):
        at = nodes.starts.item(node)
        for operand in (nodes.args[at : at + nodes.counts.item(node)] & NODE_MASK).tolist():
            if operand in known and node not in known:
                known[node] = found[node] = known[operand]
    return found


def _written(type: NodeType, since: int) -> str:
    """The names of the parameters of a type that were written to at a time or later."""
    read = [parameter for spec in type.parameters if (parameter := spec.parameter()) is not None]
    members = (member for parameter in read for member in parameter.members())
    return ", ".join(dict.fromkeys(member.name for member in members if member.written >= since))
