"""Mini-batches of a model of `edbatch.models.workloads`, and how long they take beside their matrix products alone."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from random import Random
from typing import Any

import edbatch as eb
from edbatch.models.workloads import WORKLOADS
from scripts import data_folder
from scripts.bench.measure import STAGES, interleaved
from scripts.bench.products import products


def samples(name: str, n: int) -> list[Any]:
    """The first samples of a workload, made up where there is no data."""
    workload, folder = WORKLOADS[name], data_folder()
    if folder is None:
        return workload.generate(n, 0)
    return workload.read(*(folder / path for path in workload.folder))[:n]


def source() -> str:
    """What `samples` are, for the title of a table."""
    return "made-up data" if data_folder() is None else "real data"


def as_tuples(sample: Any) -> Any:
    """A sample in which nothing can change: one that is replayed need not be compared."""
    return tuple(map(as_tuples, sample)) if isinstance(sample, (list, tuple)) else sample


class MiniBatches:
    """A model, and mini-batches of samples with a softmax at every place.

    Args:
        name: of the workload.
        given: samples, as they are read.
        hidden: size of the model's states.
        size: samples of a mini-batch.

    Attributes:
        network: the model.
        batches: samples as the model takes them.
    """

    def __init__(self, name: str, given: list[Any], hidden: int, size: int) -> None:
        self._workload = WORKLOADS[name]
        numbered, sizes, _ = self._workload.number(given)
        self.network = self._workload.network(eb.ParameterCollection(seed=0), *sizes, hidden)
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

    def products(self, number: int, policy: eb.Policy) -> Any:
        """A function that computes the matrix products of a mini-batch and nothing else."""
        return products(self.build(number, policy), policy)


def over_products(
    mini_batches: MiniBatches, variants: Mapping[str, Mapping[str, bool]], rounds: int, most: int = 4
) -> dict[str, dict[str, float]]:
    """By variant, medians over mini-batches: milliseconds, construction to values, their ratio to products, stages.

    Args:
        mini_batches: what is run.
        variants: by name, options; the products are those of the last one's graphs.
        rounds: runs of each.
        most: mini-batches that are measured.
    """
    policies = {}
    for name, options in variants.items():
        with eb.options(**options):
            policies[name] = mini_batches.learned()

    def run(name: str, number: int) -> eb.Graph:
        with eb.options(**variants[name]):
            return mini_batches.run(number, policies[name])

    def stages(name: str, number: int) -> dict[str, float]:
        with eb.options(**variants[name]):
            return mini_batches.stages(number, policies[name])

    last = list(variants)[-1]
    rows: dict[str, list[dict[str, float]]] = {name: [] for name in variants}
    for number in range(min(most, len(mini_batches.batches))):
        with eb.options(**variants[last]):
            alone = mini_batches.products(number, policies[last])
        timed = {name: lambda name=name, number=number: run(name, number) for name in variants}
        found = interleaved(timed | {"products": alone}, rounds)
        for name in variants:
            ratio = found[name].seconds / found["products"].seconds
            by_stage = {f"{stage} ms": 1e3 * value for stage, value in stages(name, number).items()}
            rows[name].append({**found[name].ms(), "total / products": ratio, **by_stage})
    return {name: {key: statistics.median(row[key] for row in of) for key in of[0]} for name, of in rows.items()}
