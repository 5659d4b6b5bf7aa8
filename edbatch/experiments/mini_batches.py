"""Mini-batches of a workload: recorded, run, replayed, learned from."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import edbatch as eb
from edbatch.experiments.measure import STAGES
from edbatch.models.workloads import WORKLOADS


def samples_of(name: str, n: int, folder: Path | None) -> list[Any]:
    """The first samples of a workload: of the data in a folder, and made up where there is none.

    Raises:
        EdBatchError: the folder has not the workload's files, or they are malformed.
    """
    workload = WORKLOADS[name]
    if folder is None or not workload.folder:
        return workload.generate(n, 0)
    return workload.open_files(*(folder / path for path in workload.folder)).take(n)


def as_tuples(sample: Any) -> Any:
    """A sample in which nothing can change: one that is replayed need not be compared.

    Example:
        >>> from edbatch.data.programs import Step
        >>> as_tuples([[1, 2], Step("scene", [], [])])
        ((1, 2), Step(function='scene', inputs=(), values=()))
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
        model: its parameters.
        network: the model.
        batches: samples as the model takes them.
    """

    def __init__(self, name: str, given: list[Any], hidden: int, size: int) -> None:
        self._workload = WORKLOADS[name]
        numbered, sizes, _ = self._workload.number(given)
        self.model = eb.ParameterCollection(seed=0)
        self.network = self._workload.network(self.model, *sizes, hidden)
        self.batches = [list(map(as_tuples, numbered[at : at + size])) for at in range(0, len(numbered), size)]
        self._replayed = eb.replay(self._workload.probabilities)
        self._random = Random(0)

    def build(self, number: int, policy: eb.Policy | None = None, replays: bool = False) -> eb.Graph:
        """The graph of one mini-batch, with the options in force; `replays`: samples are recorded once."""
        probabilities = self._replayed if replays else self._workload.probabilities
        with eb.Graph(policy=policy) as graph:
            for sample in self.batches[number]:
                probabilities(self.network, sample)
        return graph

    def run(self, number: int, policy: eb.Policy | None = None, replays: bool = False) -> eb.Graph:
        """Build and run it."""
        graph = self.build(number, policy, replays)
        graph.run()
        return graph

    def replay(self, number: int, policy: eb.Policy | None = None) -> eb.Graph:
        """The same from recorded samples, in another order each time, so that no plan that is there fits."""
        self._random.shuffle(self.batches[number])
        return self.run(number, policy, replays=True)

    def learned(self, numbers: Iterable[int] = (0,)) -> eb.Policy:
        """A policy for these mini-batches."""
        return eb.learn([self.build(number).typed_graph() for number in numbers], progress=False)

    def stages(self, number: int, policy: eb.Policy) -> dict[str, float]:
        """Build and run it; seconds by stage. Not to be timed: a report takes as long as a small mini-batch."""
        seconds = self.run(number, policy).report().seconds
        return {stage: seconds.get(stage, 0.0) for stage in STAGES}  # few nodes are neither lowered nor scheduled
