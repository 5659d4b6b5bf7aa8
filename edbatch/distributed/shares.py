"""How mini-batches are divided: by the number of nodes of the samples' graphs, not by the number of samples."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heapreplace
from typing import Any

import numpy as np

from edbatch.distributed.failures import failed
from edbatch.errors import EdBatchError, shown
from edbatch.graph import draws
from edbatch.policy.policy import Policy
from edbatch.runtime.graph import Graph
from edbatch.training.mini_batch import Losses


def divided(sizes: Sequence[int], n: int) -> list[list[int]]:
    """Places of samples, ascending, of n parts of about the same size: the largest first, each to the smallest part.

    The parts follow from the sizes alone. A largest part is at most 4/3 of what it must be (Graham 1969).

    Example:
        >>> divided([5, 1, 4, 3, 3], 2)
        [[0, 4], [1, 2, 3]]
    """
    loads = [(0, part) for part in range(n)]
    heapify(loads)
    parts: list[list[int]] = [[] for _ in range(n)]
    for place in sorted(range(len(sizes)), key=lambda place: (-sizes[place], place)):
        load, part = loads[0]
        parts[part].append(place)
        heapreplace(loads, (load + sizes[place], part))
    return [sorted(part) for part in parts]


class Sizes:
    """Numbers of nodes of samples, each counted once: by recording its loss alone, or as the caller counts.

    Of losses that read values as they are recorded (programs over values) the number would depend on what has been
    learned so far, and a run that goes on would divide otherwise: the length of the pickled sample stands for it.

    Args:
        losses: as of `Run`.
        nodes: from a sample its size, or the sizes of all; None: counted.
        dtype: of the model.
        policy: of the run.
    """

    def __init__(
        self,
        losses: Losses,
        nodes: Callable[[Any], int] | Sequence[int] | None,
        dtype: Any,
        policy: str | os.PathLike[str] | Policy | None,
    ) -> None:
        self._losses = losses
        self._nodes = nodes
        self._dtype = dtype
        self._policy = policy
        self._known: dict[int, int] = {}
        self._reads = False

    def unknown(self, numbers: Iterable[int]) -> list[int]:
        """Of samples those whose sizes are not known yet."""
        if self._nodes is not None and not callable(self._nodes):
            return []
        return [number for number in numbers if number not in self._known]

    def know(self, numbers: Sequence[int], sizes: Sequence[int]) -> None:
        """Have been told."""
        self._known.update(zip(numbers, sizes, strict=True))

    def of(self, number: int, sample: Callable[[], Any]) -> int:
        """The size of a sample, which is called for where it is not known.

        Raises:
            EdBatchError: what the caller counts with gives no number, or an error of the losses, which names the
                sample.
        """
        found = self._known.get(number)
        if found is None:
            found = self._known[number] = self._counted(number, sample)
        return found

    def _counted(self, number: int, sample: Callable[[], Any]) -> int:
        nodes = self._nodes
        if nodes is None:
            return self._nodes_of(number, sample())
        if not callable(nodes):
            return checked_size(number, nodes[number])
        given = sample()
        try:
            found = nodes(given)
        except Exception as error:
            raise failed(f"train: nodes of sample {number}", error) from error
        return checked_size(number, found)

    def _nodes_of(self, number: int, sample: Any) -> int:
        if not self._reads:
            drawn = draws.state()
            try:
                with Graph(policy=self._policy, dtype=self._dtype) as graph:
                    self._losses([sample])
            except Exception as error:
                raise failed(f"train: losses of sample {number}", error) from error
            finally:
                draws.restore(drawn)
            self._reads = graph.batches > 0 or bool(graph.rounds.count)
            if not self._reads:
                return graph.n
        return len(pickle.dumps(sample))


def checked_size(number: int, found: Any) -> int:
    """As a caller gives it."""
    if isinstance(found, bool) or not isinstance(found, int | np.integer) or found < 0:
        raise EdBatchError(f"train: nodes: expected a number of nodes of sample {number}, got {shown(found)}")
    return int(found)


def checked_sizes(found: Any, n: int) -> list[int]:
    """Of all samples, as a caller gives them."""
    if not isinstance(found, Sequence | np.ndarray) or isinstance(found, str | bytes):
        raise EdBatchError(f"train: nodes: expected a function of a sample, or sizes of all, got {shown(found)}")
    if len(found) != n:
        raise EdBatchError(f"train: nodes: expected the sizes of {n} samples, got {len(found)}")
    return [checked_size(*pair) for pair in enumerate(found)]
