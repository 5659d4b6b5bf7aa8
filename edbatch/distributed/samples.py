"""Samples: who reads them, and those of a part of a mini-batch, which know which of them is being recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, SupportsIndex

from edbatch.errors import EdBatchError, shown
from edbatch.runtime.graph import Graph


class Recipe(Sequence[Any]):
    """Data that workers read, each the samples of its own parts, and not the process that has the run, for all.

    Workers get the data themselves, once, pickled: not samples but a way to read them, as the name of a file and where
    in it each begins. What they name must be there on all machines. A sample is read when its mini-batch is next, and
    forgotten after it; one whose size is not known (see `nodes` of `train`) is read and counted before, by some worker.

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
    """A sample.

    Raises:
        EdBatchError: it cannot be read.
    """
    try:
        return data[number]
    except Exception as error:
        raise EdBatchError(f"train: sample {number} cannot be read ({type(error).__name__}: {error})") from error


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

    @property
    def place(self) -> str:
        """The one that was asked for last, as messages have it."""
        if self.last is not None:
            return f"sample {self.last}"
        more = f" and {len(self) - 3} more" if len(self) > 3 else ""
        return f"samples {', '.join(map(str, self.numbers[:3]))}{more}"

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
