"""Policies side by side on the same mini-batches: values, batches, memory access, time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

import edbatch as eb
from edbatch.policy import Policy, TypedGraph

MiniBatch = Sequence[Any]
Probabilities = Callable[[MiniBatch], list[list[eb.Expression]]]  # per sample, vectors
SUMS = ("batches", "lower_bound", "viewed", "gathered", "gathered_bytes", "fallbacks")  # of reports


class Prediction(NamedTuple):
    """The largest probability at every place of a sample, and its entry."""

    best: NDArray[np.integer]
    probability: NDArray[np.floating]


@dataclass
class Measured:
    """Results of one policy on all mini-batches."""

    predictions: list[Prediction] = field(default_factory=list)  # one per sample
    difference: float = 0.0  # the largest of any probability from the first of the policies
    seconds: dict[str, float] = field(default_factory=dict)  # by stage; "reading" copies the values to the caller
    sums: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SUMS, 0))  # of what reports have by these names

    @property
    def total_seconds(self) -> float:
        """The sum over all stages."""
        return sum(self.seconds.values())


class _Run(NamedTuple):
    lengths: list[int]  # of samples
    values: NDArray[np.floating] | list[NDArray[np.floating]]  # of all places, [labels] each
    report: eb.Report
    seconds: dict[str, float]


def record(probabilities: Probabilities, mini_batch: MiniBatch) -> TypedGraph:
    """The graph of a mini-batch as a policy sees it; runs nothing but programs."""
    with eb.Graph() as graph:
        probabilities(mini_batch)
    return graph.typed_graph()


def compare(
    probabilities: Probabilities, mini_batches: Sequence[MiniBatch], policies: Mapping[str, Policy], rounds: int
) -> dict[str, Measured]:
    """Run every mini-batch under every policy `rounds` times and measure; the first policy is the reference for the
    values.

    The policies take turns on each mini-batch, so that what disturbs the machine hits all alike; before, each runs the
    first mini-batch once untimed. Times include the construction of the graph. A mini-batch counts with its median run.
    """
    for policy in policies.values():
        _run(probabilities, mini_batches[0], policy)
    measured = {name: Measured() for name in policies}
    turns = tqdm(total=len(mini_batches) * rounds, desc="comparing policies", delay=1, leave=False, disable=None)
    for index, mini_batch in enumerate(mini_batches):
        runs: dict[str, list[_Run]] = {name: [] for name in policies}
        for turn in range(index, index + rounds):
            first = turn % len(policies)
            for name in [*policies][first:] + [*policies][:first]:
                runs[name].append(_run(probabilities, mini_batch, policies[name]))
            turns.update()
        reference = np.concatenate(next(iter(runs.values()))[0].values)
        for name, found in measured.items():
            _add(found, runs[name], reference)
    turns.close()
    return measured


def _run(probabilities: Probabilities, mini_batch: MiniBatch, policy: Policy) -> _Run:
    start = perf_counter()
    with eb.Graph(policy=policy) as graph:
        of_samples = probabilities(mini_batch)
        values = eb.forward([p for of_sample in of_samples for p in of_sample])
    total = perf_counter() - start
    report = graph.report()
    seconds = dict(report.seconds) | {"reading": total - sum(report.seconds.values())}
    return _Run([len(of_sample) for of_sample in of_samples], values, report, seconds)


def _add(measured: Measured, runs: list[_Run], reference: NDArray[np.floating]) -> None:
    """Add one mini-batch, with the times of its median run."""
    best, most = (np.array([f(p) for p in runs[0].values]) for f in (np.argmax, np.max))
    ends = np.cumsum(runs[0].lengths)[:-1]
    measured.predictions += map(Prediction, np.split(best, ends), np.split(most, ends))
    for run in runs:
        difference = np.abs(np.concatenate(run.values) - reference).max()
        measured.difference = max(measured.difference, float(difference))
    by_time = sorted(runs, key=lambda run: sum(run.seconds.values()))
    for stage, seconds in by_time[(len(runs) - 1) // 2].seconds.items():
        measured.seconds[stage] = measured.seconds.get(stage, 0.0) + seconds
    for name in SUMS:
        measured.sums[name] += getattr(runs[0].report, name)
