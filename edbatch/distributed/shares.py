"""How mini-batches are divided: by the number of nodes of the samples' graphs, not by the number of samples."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Sequence
from heapq import heapify, heapreplace
from typing import Any

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
        nodes: from a sample its size; None: counted.
        dtype: of the model.
        policy: of the run.
    """

    def __init__(
        self,
        losses: Losses,
        nodes: Callable[[Any], int] | None,
        dtype: Any,
        policy: str | os.PathLike[str] | Policy | None,
    ) -> None:
        self._losses = losses
        self._nodes = nodes
        self._dtype = dtype
        self._policy = policy
        self._known: dict[int, int] = {}
        self._reads = False

    def of(self, number: int, sample: Any) -> int:
        """The size of a sample.

        Raises:
            EdBatchError: what the caller counts with gives no number, or an error of the losses, which names the
                sample.
        """
        found = self._known.get(number)
        if found is None:
            found = self._known[number] = self._counted(number, sample)
        return found

    def _counted(self, number: int, sample: Any) -> int:
        if self._nodes is not None:
            try:
                found = self._nodes(sample)
            except Exception as error:
                raise EdBatchError(f"train: nodes of sample {number}: {type(error).__name__}: {error}") from error
            if isinstance(found, bool) or not isinstance(found, int) or found < 0:
                raise EdBatchError(f"train: nodes: expected a number of nodes of sample {number}, got {shown(found)}")
            return found
        if not self._reads:
            drawn = draws.state()
            try:
                with Graph(policy=self._policy, dtype=self._dtype) as graph:
                    self._losses([sample])
            except Exception as error:
                raise failed(error, f"sample {number}") from error
            finally:
                draws.restore(drawn)
            self._reads = graph.batches > 0 or bool(graph.rounds.count)
            if not self._reads:
                return graph.n
        return len(pickle.dumps(sample))


def failed(error: Exception, of: str) -> EdBatchError:
    """An error of the user's losses, with the sample's number."""
    what = str(error) if isinstance(error, EdBatchError) else f"{type(error).__name__}: {error}"
    return EdBatchError(f"train: losses of {of}: {what}")
