"""Policies side by side on the same mini-batches of trees: values, batches, memory access, time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

import edbatch as eb
from edbatch.models.tree_lstm import TreeLSTM
from edbatch.policy import Policy, TypedGraph


class Sample(NamedTuple):
    """A binary tree as `TreeLSTM.hidden` takes it."""

    words: list[int | None]
    children: list[tuple[int, ...]]


MiniBatch = Sequence[Sample]


@dataclass
class Measured:
    """What one policy did on all mini-batches.

    Attributes:
        probabilities: float[trees, labels], at the roots.
        difference: the largest difference of any value, at any node, from the first of the policies.
        seconds: by stage, the sum over the mini-batches. "reading" copies the values to the caller.
        batches, lower_bound, viewed, gathered, gathered_bytes, fallbacks: sums over the mini-batches, as in
            `edbatch.Report`.
    """

    probabilities: NDArray[np.floating]
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
    values: NDArray[np.floating]  # [nodes, labels]
    report: eb.Report
    seconds: dict[str, float]


def record(lstm: TreeLSTM, mini_batch: MiniBatch) -> TypedGraph:
    """The graph of a mini-batch as a policy sees it; runs nothing.

    Example:
        >>> lstm = TreeLSTM(eb.ParameterCollection(), words=10, labels=5, dim=4)
        >>> record(lstm, [Sample([1], [()]), Sample([1, 2, None], [(), (), (0, 1)])])
        TypedGraph(... nodes, ... edges, ... types)
    """
    with eb.Graph() as graph:
        _probabilities(lstm, mini_batch)
    return graph.typed_graph()


def compare(
    lstm: TreeLSTM, mini_batches: Sequence[MiniBatch], policies: Mapping[str, Policy], rounds: int
) -> dict[str, Measured]:
    """Run every mini-batch under every policy and measure.

    The policies take turns on each mini-batch, so that what disturbs the machine hits all alike; before, each
    runs the first mini-batch once untimed. Times include the construction of the graph. With several rounds
    a mini-batch counts with its median run.

    Args:
        lstm: the model; gives the softmax of its scores at every node.
        mini_batches: at least one, each of at least one tree.
        policies: by any name. The first is the reference for the values.
        rounds: how often each mini-batch runs under each policy.

    Example:
        >>> lstm = TreeLSTM(eb.ParameterCollection(), words=10, labels=5, dim=4)
        >>> mini_batch = [Sample([1], [()]), Sample([1, 2, None], [(), (), (0, 1)])]
        >>> policies = {name: eb.get_policy(name) for name in ("none", "sufficient")}
        >>> measured = compare(lstm, [mini_batch], policies, rounds=1)
        >>> measured["none"].batches > measured["sufficient"].batches == measured["sufficient"].lower_bound
        True
        >>> measured["sufficient"].probabilities.shape, measured["sufficient"].difference < 1e-6
        ((2, 5), True)
    """
    names = list(policies)
    for name in names:
        _run(lstm, mini_batches[0], policies[name])
    roots: dict[str, list[NDArray[np.floating]]] = {name: [] for name in names}
    measured = {name: Measured(np.empty(0)) for name in names}
    with tqdm(
        total=len(mini_batches) * rounds, desc="comparing policies", unit="mini-batch", delay=1, leave=False,
        disable=None,
    ) as bar:  # fmt: skip
        for index, mini_batch in enumerate(mini_batches):
            at_roots = np.cumsum([len(sample.words) for sample in mini_batch]) - 1
            runs: dict[str, list[_Run]] = {name: [] for name in names}
            for turn in range(index, index + rounds):
                first = turn % len(names)
                for name in names[first:] + names[:first]:
                    runs[name].append(_run(lstm, mini_batch, policies[name]))
                bar.update()
            reference = runs[names[0]][0].values
            for name in names:
                _add(measured[name], runs[name], reference)
                roots[name].append(runs[name][0].values[at_roots])
    for name in names:
        measured[name].probabilities = np.concatenate(roots[name])
    return measured


def _probabilities(lstm: TreeLSTM, mini_batch: MiniBatch) -> list[eb.Expression]:
    """Of every node of every tree."""
    return [lstm.probabilities(h) for sample in mini_batch for h in lstm.hidden(sample.words, sample.children)]


def _run(lstm: TreeLSTM, mini_batch: MiniBatch, policy: Policy) -> _Run:
    start = perf_counter()
    with eb.Graph(policy=policy) as graph:
        values = eb.forward(_probabilities(lstm, mini_batch))
    total = perf_counter() - start
    report = graph.report()
    stages = dict(report.seconds)
    return _Run(np.stack(values), report, stages | {"reading": total - sum(stages.values())})


def _add(measured: Measured, runs: list[_Run], reference: NDArray[np.floating]) -> None:
    """Add one mini-batch, with the times of its median run."""
    for run in runs:
        measured.difference = max(measured.difference, float(np.abs(run.values - reference).max()))
    by_time = sorted(runs, key=lambda run: sum(run.seconds.values()))
    for stage, seconds in by_time[(len(runs) - 1) // 2].seconds.items():
        measured.seconds[stage] = measured.seconds.get(stage, 0.0) + seconds
    report = runs[0].report
    measured.batches += report.batches
    measured.lower_bound += report.lower_bound
    measured.viewed += report.viewed
    measured.gathered += report.gathered
    measured.gathered_bytes += report.gathered_bytes
    measured.fallbacks += report.fallbacks
