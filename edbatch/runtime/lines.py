"""Errors while a graph runs say where in the user's code the nodes were recorded."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from edbatch.graph.views import NODE_MASK
from edbatch.runtime.nodes import Nodes

_SHOWN = 3


class Lines:
    """Where the nodes of a graph were recorded.

    Args:
        lines: by node "file:line"; None if the graph was opened without `options(trace_lines=True)`.
        nodes: of the graph.
    """

    def __init__(self, lines: Mapping[int, str] | None, nodes: Nodes) -> None:
        self._lines = lines
        self._nodes = nodes

    def of(self, nodes: np.ndarray) -> str:
        """What is put behind an error's text: the lines of some nodes, or how to get them."""
        if self._lines is None:
            return "; a graph opened under edbatch.options(trace_lines=True) says where it was recorded"
        found = list(dict.fromkeys(line for node in nodes[:1000].tolist() if (line := self._line(node)) is not None))
        more = f" and {len(found) - _SHOWN} other lines" if len(found) > _SHOWN else ""
        return f", recorded at {', '.join(found[:_SHOWN])}{more}" if found else ""

    def _line(self, node: int) -> str | None:
        """Of a part that a cell was split into, the line of what reads it: the cell's last part has the cell's node."""
        assert self._lines is not None
        seen = self._nodes
        while node not in self._lines:
            starts, ends = seen.starts[: seen.n], seen.starts[: seen.n] + seen.counts[: seen.n]
            for place in np.flatnonzero((seen.args[: seen.n_args] & NODE_MASK) == node).tolist():
                users = np.flatnonzero((starts <= place) & (place < ends))
                if len(users) and users[0] != node:
                    node = int(users[0])
                    break
            else:
                return None
        return self._lines[node]
