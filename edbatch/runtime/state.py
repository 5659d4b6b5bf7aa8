"""What belongs to one graph while it runs, and while it is gone back through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from edbatch.graph.node_type import NodeType
from edbatch.graph.views import NODE_MASK
from edbatch.memory.plan.arenas import Arenas
from edbatch.memory.plan.growing import GrowingPlan
from edbatch.runtime.nodes import Nodes
from edbatch.runtime.plan_cache import CachedPlan
from edbatch.runtime.type_table import TypeTable

_SHOWN = 3


class Timed(NamedTuple):
    """A batch that has run, forward or backward.

    Attributes:
        type, n: of its nodes; how many.
        viewed, gathered: operands that were used in place, and that had to be copied together.
        start, seconds: see `time.perf_counter`.
    """

    type: int
    n: int
    viewed: int
    gathered: int
    start: float
    seconds: float


class GraphState:
    """A graph's types, nodes and values.

    Attributes:
        nodes, plan: those that were taken over, of which the first `done` have run; what has run.
        arenas: the values.
        recorded: by node "file:line" where it was recorded, under `options(trace_lines=True)`, else None.
        known: the cached plan of its structure, whose nodes and plan these are, as long as the graph has not grown.
        profile: the batches as they ran, under `options(profile=True)`, else None.
        integers: those of its nodes, in the order of recording, and room for more (int32).
    """

    table: TypeTable
    nodes: Nodes
    done: int
    plan: GrowingPlan
    arenas: Arenas
    check_nan: bool
    recorded: dict[int, str] | None
    known: CachedPlan | None
    integers: np.ndarray
    profile: list[Timed] | None

    def lines(self, nodes: np.ndarray) -> str:
        """What is put behind an error's text: the lines of some nodes, or how to get them."""
        if self.recorded is None:
            return "; a graph opened under edbatch.options(trace_lines=True) says where it was recorded"
        found = list(dict.fromkeys(line for node in nodes[:1000].tolist() if (line := self._line(node)) is not None))
        more = f" and {len(found) - _SHOWN} other lines" if len(found) > _SHOWN else ""
        return f", recorded at {', '.join(found[:_SHOWN])}{more}" if found else ""

    def _line(self, node: int) -> str | None:
        """Of a part that a cell was split into, the line of what reads it: the cell's last part has the cell's node."""
        assert self.recorded is not None
        seen = self.nodes
        while node not in self.recorded:
            starts, ends = seen.starts[: seen.n], seen.starts[: seen.n] + seen.counts[: seen.n]
            for place in np.flatnonzero((seen.args[: seen.n_args] & NODE_MASK) == node).tolist():
                users = np.flatnonzero((starts <= place) & (place < ends))
                if len(users) and users[0] != node:
                    node = int(users[0])
                    break
            else:
                return None
        return self.recorded[node]

    def outdated(self, marks: Sequence[tuple[int, int]], before: Mapping[int, str]) -> dict[int, str]:
        """Of the nodes that run next, those that read, or depend on, a parameter that changed since they were recorded.

        Args:
            marks: how many nodes had been recorded when parameters were written to, and when that was.
            before: those that have run.

        Returns:
            By node the names of the parameters.
        """
        nodes, bound = self.nodes, self.table.bound
        found: dict[int, str] = {}
        begin = self.done
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
        for node in range(self.done, nodes.n):
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
