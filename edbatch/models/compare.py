"""Policies side by side on the same mini-batches: values, batches, memory access, time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

import edbatch as eb
from edbatch.policy import Policy, TypedGraph

MiniBatch = Sequence[Any]
Probabilities = Callable[[MiniBatch], list[list[eb.Expression]]]  # per sample, vectors


class Prediction(NamedTuple):
    """The largest probability at every place of a sample, and its entry: int[places], float[places]."""

    best: NDArray[np.integer]
    probability: NDArray[np.floating]


SUMS = ("batches", "lower_bound", "viewed", "gathered", "gathered_bytes", "fallbacks")  # of reports


@dataclass
class Measured:
    """What one policy did on all mini-batches.

    Attributes:
        predictions: one per sample.
        difference: the largest difference of any probability from the first of the policies.
        seconds: by stage, the sum over the mini-batches. "reading" copies the values to the caller.
        batches, lower_bound, viewed, gathered, gathered_bytes, fallbacks: sums over the mini-batches, as in
            `edbatch.Report`.
    """

    predictions: list[Prediction] = field(default_factory=list)
    difference: float = 0.0
    seconds: dict[str, float] = field(default_factory=dict)
    batches: int = 0
    lower_bound: int = 0
    viewed: int = 0
    gathered: int = 0
    gathered_bytes: int = 0
    fallbacks: int = 0

    @property
    def total_seconds(self) -> float:
        """Of all stages."""
        return sum(self.seconds.values())


class _Run(NamedTuple):
    values: list[NDArray[np.floating]]  # per place [labels]
    places: list[int]  # per sample
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
    """Run every mini-batch under every policy and measure.

    The policies take turns on each mini-batch, so that what disturbs the machine hits all alike; before, each
    runs the first mini-batch once untimed. Times include the construction of the graph. With several rounds
    a mini-batch counts with its median run.

    Args:
        probabilities: builds what is asked for, per sample a list of vectors.
        mini_batches: at least one, each of at least one sample.
        policies: by any name. The first is the reference for the values.
        rounds: how often each mini-batch runs under each policy.
    """
    names = list(policies)
    for name in names:
        _run(probabilities, mini_batches[0], policies[name])
    measured = {name: Measured() for name in names}
    turns = [(index, turn) for index in range(len(mini_batches)) for turn in range(index, index + rounds)]
    runs: dict[str, list[_Run]] = {}
    for index, turn in tqdm(turns, "comparing policies", unit="mini-batch", delay=1, leave=False, disable=None):
        if turn == index:
            runs = {name: [] for name in names}
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            runs[name].append(_run(probabilities, mini_batches[index], policies[name]))
        if turn == index + rounds - 1:
            for name in names:
                _add(measured[name], runs[name], runs[names[0]][0].values)
    return measured


def _run(probabilities: Probabilities, mini_batch: MiniBatch, policy: Policy) -> _Run:
    start = perf_counter()
    with eb.Graph(policy=policy) as graph:
        of_samples = probabilities(mini_batch)
        values = eb.forward([p for of_sample in of_samples for p in of_sample])
    total = perf_counter() - start
    report = graph.report()
    stages = dict(report.seconds)
    return _Run(list(values), list(map(len, of_samples)), report, stages | {"reading": total - sum(stages.values())})


def _add(measured: Measured, runs: list[_Run], reference: list[NDArray[np.floating]]) -> None:
    """Add one mini-batch, with the times of its median run."""
    values = iter(runs[0].values)
    for places in runs[0].places:
        of_sample = list(islice(values, places))
        best, probability = [p.argmax() for p in of_sample], [p.max() for p in of_sample]
        measured.predictions.append(Prediction(np.array(best), np.array(probability)))
    joined = np.concatenate(reference)
    for run in runs:
        measured.difference = max(measured.difference, float(np.abs(np.concatenate(run.values) - joined).max()))
    by_time = sorted(runs, key=lambda run: sum(run.seconds.values()))
    for stage, seconds in by_time[(len(runs) - 1) // 2].seconds.items():
        measured.seconds[stage] = measured.seconds.get(stage, 0.0) + seconds
    for name in SUMS:
        setattr(measured, name, getattr(measured, name) + getattr(runs[0].report, name))
