"""The samples of a part of a mini-batch, which know which of them is being recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, SupportsIndex

from edbatch.runtime.graph import Graph


class Samples(list[Any]):
    """A list of samples; while a function goes through them one by one, what it draws is each sample's own.

    Masks of `dropout` then follow from the seed, the number of the mini-batch, and the place of the sample in it: not
    from how many workers there are. Where a function asks for all samples first and records after, as programs do that
    run together, they follow from the part too.

    Args:
        given: samples, at least one.
        numbers: of each, in the data.
        places: of each, in the mini-batch.

    Attributes:
        last: the number of the one that was asked for last; None before.

    Example:
        >>> import edbatch as eb
        >>> def masks(samples):
        ...     with eb.Graph(seed=0) as graph:
        ...         samples.draw_in(graph)
        ...         ys = [eb.dropout(eb.ones(3), 0.5) for _ in samples]
        ...     return eb.forward(ys)
        >>> whole = masks(Samples("ab", [7, 8], [0, 1]))
        >>> part = masks(Samples("b", [8], [1]))
        >>> (whole[1] == part[0]).all()
        np.True_
    """

    def __init__(self, given: Sequence[Any], numbers: Sequence[int], places: Sequence[int]) -> None:
        super().__init__(given)
        self.numbers, self._places = numbers, places
        self.last: int | None = None
        self._graph: Graph | None = None
        self._drawn: dict[int, int] = {}
        self._at = -1

    def draw_in(self, graph: Graph) -> None:
        """From now on say in this graph which sample draws."""
        self._graph = graph
        self._at = 0
        graph.stream = 1 + self._places[0]  # 0 is the graph's own

    def __iter__(self) -> Iterator[Any]:
        for at, sample in enumerate(super().__iter__()):
            self._begin(at)
            yield sample

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        if isinstance(at, SupportsIndex):
            self._begin(range(len(self))[at])
        return found

    def _begin(self, at: int) -> None:
        graph = self._graph
        self.last = self.numbers[at]
        if graph is None or at == self._at:
            return
        self._drawn[self._at] = graph.next_draw
        self._at = at
        graph.stream = 1 + self._places[at]
        graph.next_draw = self._drawn.get(at, -1)
