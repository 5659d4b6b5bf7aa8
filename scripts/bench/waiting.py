"""A lower bound on the batches of programs over values, over the finished graph.

What a program records after it has waited depends on the values that it has waited for: it cannot run before them,
though no operand says so. With these edges added, the bound of the paper's appendix A.3 holds for every way to run the
programs, whatever waits for what and for how long.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from types import CoroutineType, GeneratorType
from typing import Any, NamedTuple

import numpy as np

import edbatch as eb
from edbatch.graph.views import NODE_MASK
from edbatch.policy import TypedGraph, lower_bound
from edbatch.runtime.programs.requests import Parts, Values


class Span(NamedTuple):
    """Nodes `begin` to `end`, which a program has recorded after it had the values of the nodes `waited`."""

    begin: int
    end: int
    waited: tuple[int, ...]


class Watched:
    """Programs that run as they are, while it is noted what they record after what.

    Args:
        graph: that they record into.
    """

    def __init__(self, graph: eb.Graph) -> None:
        self._graph = graph
        self._spans: list[Span] = []

    def program(
        self, program: Any, waited: tuple[int, ...] = (), ends: list[int] | None = None
    ) -> Generator[Any, Any, Any]:
        """The same program, watched.

        Args:
            waited: what had to be there before it began.
            ends: is told what it waited for last.
        """
        answer = None
        while True:
            begin = self._graph.n
            try:
                request = program.send(answer)
            except StopIteration as end:
                self._spans.append(Span(begin, self._graph.n, waited))
                if ends is not None:
                    ends += waited
                return end.value
            self._spans.append(Span(begin, self._graph.n, waited))
            of_parts: list[int] = []
            if isinstance(request, Parts):
                kinds = CoroutineType | GeneratorType
                request.programs = [
                    self.program(part if isinstance(part, kinds) else part.__await__(), waited, of_parts)
                    for part in request.programs
                ]
            answer = yield request
            waited = tuple(of_parts) or _asked(request)

    def bound(self) -> int:
        """No way to run what was recorded has fewer batches; parts that were split off cells wait for nothing."""
        evaluation = self._graph._evaluation
        assert evaluation is not None
        chosen, typed = evaluation.typed_graph(evaluation.split(), 0)
        place = np.full(evaluation.nodes.n, -1)
        place[chosen] = np.arange(len(chosen))
        waited: list[tuple[int, ...]] = [()] * len(chosen)
        for span in self._spans:
            known = tuple(int(at) for at in place[list(span.waited)] if at >= 0)
            for at in place[span.begin : span.end]:
                if at >= 0:
                    waited[at] = known
        return lower_bound(with_edges(typed, waited))


def _asked(request: Any) -> tuple[int, ...]:
    """Numbers of the nodes that a program waits for."""
    if isinstance(request, Values):
        request = request.expressions
    listed: Iterable[Any] = request if isinstance(request, list | tuple) else [request]
    return tuple(expression.id & NODE_MASK for expression in listed)


def with_edges(typed: TypedGraph, more: list[tuple[int, ...]]) -> TypedGraph:
    """The graph in which nodes wait for others, too."""
    operands = [
        [*typed.operands[begin:end].tolist(), *more[at]]
        for at, (begin, end) in enumerate(zip(typed.indptr[:-1], typed.indptr[1:], strict=True))
    ]
    indptr = np.cumsum([0, *map(len, operands)])
    return TypedGraph.checked(typed.types, indptr, [x for row in operands for x in row], typed.names)
