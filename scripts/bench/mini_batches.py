"""Mini-batches of a workload: recorded, run, learned from."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import edbatch as eb
from edbatch.models import workloads
from edbatch.models.workloads import WORKLOADS
from edbatch.policy import TypedGraph
from scripts.bench.measure import STAGES

NINE = tuple(workloads.NINE)  # ED-Batch's workloads
LEARNED, HELD_OUT = 3, 3  # mini-batches that something is learned from, and those that it is measured on


def samples_of(name: str, n: int, folder: Path | None) -> list[Any]:
    """The first samples of a workload: of the data in a folder, and made up where there is none.

    Raises:
        EdBatchError: the folder has not the workload's files, or they are malformed.
    """
    workload = WORKLOADS[name]
    if folder is None or not workload.folder:
        return workload.generate(n, 0)
    return workload.read(*(folder / path for path in workload.folder), limit=n)


def as_tuples(sample: Any) -> Any:
    """A sample in which nothing can change: one that is replayed need not be compared.

    Example:
        >>> as_tuples([[1, 2], [3, None]])
        ((1, 2), (3, None))
    """
    if isinstance(sample, tuple) and hasattr(sample, "_fields"):
        return type(sample)(*map(as_tuples, sample))
    return tuple(map(as_tuples, sample)) if isinstance(sample, (list, tuple)) else sample


class MiniBatches:
    """A model, and mini-batches of samples with a softmax at every place.

    Args:
        name: of the workload.
        given: samples, as they are read.
        hidden: size of the model's states.
        size: samples of a mini-batch.

    Attributes:
        batches: samples as the model takes them.
    """

    def __init__(self, name: str, given: list[Any], hidden: int, size: int) -> None:
        self._workload = WORKLOADS[name]
        numbered, sizes, _ = self._workload.number(given)
        self._network = self._workload.network(eb.ParameterCollection(seed=0), *sizes, hidden)
        self.batches = [list(map(as_tuples, numbered[at : at + size])) for at in range(0, len(numbered), size)]

    def build(self, number: int, policy: eb.Policy | None = None) -> eb.Graph:
        """The graph of one mini-batch, with the options in force."""
        with eb.Graph(policy=policy) as graph:
            for sample in self.batches[number]:
                self._workload.probabilities(self._network, sample)
        return graph

    def run(self, number: int, policy: eb.Policy | None = None) -> eb.Graph:
        """Build and run it."""
        graph = self.build(number, policy)
        graph.run()
        return graph

    def graphs(self, numbers: Iterable[int]) -> list[TypedGraph]:
        """Of some mini-batches, as a policy sees them."""
        return [self.build(number).typed_graph() for number in numbers]

    def stages(self, number: int, policy: eb.Policy | None) -> dict[str, float]:
        """Build and run it; milliseconds by stage. Not to be timed: a report takes as long as a small mini-batch."""
        seconds = self.run(number, policy).report().seconds
        return {stage: 1e3 * seconds.get(stage, 0.0) for stage in STAGES}  # few nodes are neither lowered nor scheduled


def split(name: str, hidden: int, size: int, folder: Path | None) -> tuple[MiniBatches, range, range]:
    """Mini-batches of so many samples, the numbers of those to learn from, and of the others."""
    found = MiniBatches(name, samples_of(name, (LEARNED + HELD_OUT) * size, folder), hidden, size)
    n = len(found.batches)
    learned = min(LEARNED, n - 1)
    return found, range(learned), range(learned, n)
