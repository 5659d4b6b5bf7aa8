"""Samples: who reads them, and which of a mini-batch is being recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, SupportsIndex

from edbatch.distributed.failures import unreadable
from edbatch.errors import EdBatchError, shown
from edbatch.runtime.graph import Graph


class Recipe(Sequence[Any]):
    """Data that workers read, each the samples of its own parts, and not the process that has the run, for all.

    Workers get the data themselves, once, pickled: not samples but a way to read them, as the name of a file and where
    in it each begins. What they name must be there on all machines. A sample is read when its mini-batch is next, and
    forgotten after it.

    Args:
        data: with `len(data)`, and `data[number]`, which reads a sample.

    Raises:
        EdBatchError: they are no such data.

    Example:
        >>> import edbatch as eb
        >>> data = eb.distributed.Recipe(range(10, 20))
        >>> len(data), data[3]
        (10, 13)
    """

    def __init__(self, data: Sequence[Any]) -> None:
        if not hasattr(data, "__len__") or not hasattr(data, "__getitem__") or isinstance(data, str | bytes | Mapping):
            raise EdBatchError(f"Recipe: data: expected len(data) and data[number], got {shown(data)}")
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, number: Any) -> Any:
        return self.data[number]


def read(data: Sequence[Any], number: int) -> Any:
    """A sample, or an `EdBatchError` that names it."""
    try:
        return data[number]
    except Exception as error:
        raise unreadable("train", number, error) from error


class Samples(list[Any]):
    """A list of samples; while a function goes through them one by one, what it draws is each sample's own.

    Masks of `dropout` then follow from the seed, the mini-batch and the place of the sample in it: not from how many
    workers there are; where a function asks for all samples first and records after, they follow from the part too.

    Args:
        given: samples, at least one.
        numbers: of each, in the data.
        places: of each, in the mini-batch.

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
        self._numbers, self._places = numbers, places
        self._graph: Graph | None = None
        self._drawn: dict[int, int] = {}  # by place here
        self._at = -1  # of the one that was asked for last

    @property
    def place(self) -> str:
        """The one that was asked for last, as messages have it."""
        return self.all if self._at < 0 else f"sample {self._numbers[self._at]}"

    @property
    def all(self) -> str:
        """All of them, as messages have it."""
        more = f" and {len(self) - 3} more" if len(self) > 3 else ""
        return f"samples {', '.join(map(str, self._numbers[:3]))}{more}"

    def draw_in(self, graph: Graph) -> None:
        """From now on say in this graph which sample draws."""
        self._graph = graph
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
        before, self._at = self._at, at
        if (graph := self._graph) is not None and at != before:
            self._drawn[before] = graph.next_draw
            graph.stream, graph.next_draw = 1 + self._places[at], self._drawn.get(at, -1)
