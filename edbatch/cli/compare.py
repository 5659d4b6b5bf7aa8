"""Policies side by side on the same mini-batches: values, batches, memory access, time."""

from __future__ import annotations

from collections import Counter
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


@dataclass
class Measured:
    """Results of one policy on all mini-batches."""

    best: list[NDArray[Any]] = field(default_factory=list)  # per sample, at every place the likeliest entry
    probability: list[NDArray[Any]] = field(default_factory=list)  # ... and its probability
    difference: float = 0.0  # the largest of any probability from the first of the policies
    seconds: Counter[str] = field(default_factory=Counter)  # by stage; "reading" copies the values to the caller
    sums: Counter[str] = field(default_factory=Counter)  # of what reports have by these names


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
    bar = tqdm(mini_batches, "comparing policies", delay=1, leave=False, disable=None)
    for index, mini_batch in enumerate(bar):
        runs: dict[str, list[_Run]] = {name: [] for name in policies}
        for turn in range(index, index + rounds):
            first = turn % len(policies)
            for name in [*policies][first:] + [*policies][:first]:
                runs[name].append(_run(probabilities, mini_batch, policies[name]))
        reference = np.concatenate(next(iter(runs.values()))[0].values)
        for name, found in measured.items():
            _add(found, runs[name], reference)
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
    ends = np.cumsum(runs[0].lengths)[:-1]
    measured.best += np.split([value.argmax() for value in runs[0].values], ends)
    measured.probability += np.split([value.max() for value in runs[0].values], ends)
    differences = [float(np.abs(np.concatenate(run.values) - reference).max()) for run in runs]
    measured.difference = max(measured.difference, *differences)
    by_time = sorted(runs, key=lambda run: sum(run.seconds.values()))
    measured.seconds.update(by_time[(len(runs) - 1) // 2].seconds)
    measured.sums.update({name: getattr(runs[0].report, name) for name in SUMS})
