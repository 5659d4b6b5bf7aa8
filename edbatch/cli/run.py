"""`edbatch run`: a model over a whole data set, batched by several policies side by side."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import edbatch as eb
from edbatch.base.files import write_atomically
from edbatch.base.lazy import LazyModule
from edbatch.cli.arguments import JSON, Options, check_output, number, option
from edbatch.cli.output import counted, print_json, print_table
from edbatch.cli.samples import CHECKPOINT, MODEL, VOCABULARY, print_heading, read_samples, read_saved
from edbatch.errors import EdBatchError
from edbatch.policy import Policy, TypedGraph

compiled = LazyModule("edbatch.compiling.compiled")
plan_cache = LazyModule("edbatch.runtime.plan_cache")
tqdm = LazyModule("tqdm")
workloads = LazyModule("edbatch.models.workloads")

RULES = ("none", "depth", "agenda", "critical-path")  # the first is unbatched: the others are checked against it
MiniBatch = Sequence[Any]
Probabilities = Callable[[MiniBatch], list[list[eb.Expression]]]  # per sample, vectors
SUMS = ("batches", "lower_bound", "viewed", "gathered", "gathered_bytes", "fallbacks")  # of reports
LEARN_FROM = 3  # mini-batches
LEAST_RUNS = 20  # of mini-batches, per policy: little data is run several times
COUNTS = {
    "batches": "batches",
    "lower_bound": "lower bound",
    "viewed": "operands used in place",
    "gathered": "operands gathered",
    "fallbacks": "decisions in unseen states",
}

HELP = "run a model over a data set and compare policies"
DESCRIPTION = f"""\
Run a model, trained (--load) or with random parameters, over every sample of a data set; compare the batching policies
{", ".join(RULES)} and a learned one in values, batches, memory access and time.

MODEL, and what --data holds, one per line (a malformed one is an error, or skipped and counted with --skip-bad):
  tree-lstm, tree-gru, tree-lstm-2type, mv-rnn, child-sum, tree-rnn, rntn, td-tree-lstm (says the tree, from its root)
                                     bracketed trees: (3 (2 so) (4 good))
  tagger, tagger-characters          tagged sentences: Minoru|I-PER plays|O
  language-model, language-model-fixed (the text in pieces of 64 words), tree-fc (of 256)
                                     sentences
  parser                             dependencies, in CoNLL-U
  lattice-lstm, lattice-gru          lattices, see edbatch.data.lattices
  encoder-decoder, attention-decoder two files of sentences, one the translation of the other
  module-network                     questions as programs of CLEVR, in JSON; what is seen in pictures is made up
  mixture-of-experts                 made-up points only
In td-tree-lstm, parser and mixture-of-experts what comes next depends on values: a mini-batch is computed in rounds,
and lower bounds are of the rounds.
"""
OPTIONS: Options = {
    **MODEL,
    "--batch-size": number("samples", 64),
    "--load": option("a trained model: of `edbatch train --save`", "FOLDER", type=Path),
    "--device": option("cpu, cuda, cuda:1 (default: EDBATCH_DEVICE, or the CPU)", "NAME"),
    "--policy": option(f"that predicts: a file, or by name (default: learned from {LEARN_FROM} mini-batches)"),
    "--out": option("write per sample what is predicted, each label with its probability", "FILE"),
    **JSON,
}


def run(arguments: argparse.Namespace) -> None:
    """Read, learn, compare, write, on the device that was chosen."""
    with eb.device(arguments.device) if arguments.device else nullcontext():
        _run(arguments)


def _run(arguments: argparse.Namespace) -> None:
    workload = workloads.get_workload(arguments.model)
    if arguments.out is not None:
        saved_in = [arguments.load / name for name in (CHECKPOINT, VOCABULARY)] if arguments.load else []
        check_output(arguments.out, *(arguments.data or ()), arguments.policy or "", *saved_in)
    if arguments.load and arguments.hidden:
        raise EdBatchError("--hidden: not allowed with --load, which determines it")
    chosen: Any = None if arguments.policy is None else eb.get_policy(arguments.policy)
    found = read_samples(workload, arguments)
    saved = None if arguments.load is None else read_saved(arguments.load, arguments.model)
    samples, sizes, labels = workload.number(found, saved and saved.known)
    size = arguments.batch_size
    mini_batches = [samples[start : start + size] for start in range(0, len(samples), size)]
    model = eb.ParameterCollection(seed=arguments.seed)
    hidden = saved.hidden if saved else arguments.hidden or workload.hidden
    outputs = partial(workload.outputs, workload.network(model, *sizes, hidden))
    if saved:
        model.load(arguments.load / CHECKPOINT)
    learning, name = None, arguments.policy
    if chosen is None:
        chosen = eb.learn([record(outputs, mini_batch) for mini_batch in mini_batches[:LEARN_FROM]])
        learning, name = chosen.training, f"{chosen.name} (learned)"
    rounds = -(-LEAST_RUNS // len(mini_batches))
    policies = {rule: eb.get_policy(rule) for rule in RULES} | {name: chosen}
    # That they run again and again is not what is compared, nor what is interpreted until compiling pays.
    with plan_cache.afresh(), compiled.at_once():
        measured = compare(outputs, mini_batches, policies, rounds)
    if arguments.out is not None:
        _write_predictions(arguments.out, measured[name], labels, workload.root)
    n, places, device = len(samples), sum(map(len, measured[name].best)), model.device.name
    if arguments.json:
        rows = [
            {
                "policy": policy,
                "samples_per_second": n / of.seconds.total(),
                **of.sums,
                "seconds": of.seconds,
                "largest_difference": of.difference,
            }
            for policy, of in measured.items()
        ]
        counts = {"samples": n, "places": places, "labels": len(labels), "mini_batches": len(mini_batches)}
        made = {"hidden": hidden, "device": device, "rounds": rounds, "policy": name, "learning": learning}
        print_json({**counts, **made, "policies": rows})
        return
    how = f"as {arguments.load} has it" if saved else f"random parameters (seed {arguments.seed})"
    where = "" if device == "cpu" else f", on {device}"
    what = f"{counted(n, workload.noun)}, {counted(places, workload.place)}, {counted(len(labels), 'label')}"
    print_heading(arguments.model, hidden, how + where, arguments.data, what)
    times = "once" if rounds == 1 else f"{rounds} times (the median counts)"
    of_samples = f"{counted(len(mini_batches), 'mini-batch')} of {counted(min(size, n), workload.noun)}"
    print(f"{of_samples}, each run {times} by every policy in turn, after a warm-up")
    if learning:
        print(f"policy {name} from {counted(learning.graphs, 'graph')} in {learning.seconds:.2f} s")
    print()
    _print_table(measured, n, len(mini_batches), workload.noun)
    if arguments.out is not None:
        print(f"wrote {arguments.out}: the predictions of {name}")


def _write_predictions(path: str, found: Any, labels: list[Any], root: bool) -> None:
    first = -1 if root else 0
    samples = [
        zip(best[first:], of[first:], strict=True) for best, of in zip(found.best, found.probability, strict=True)
    ]
    lines = [" ".join(f"{labels[at]} {value:.6f}" for at, value in sample) for sample in samples]
    write_atomically(path, "".join(f"{line}\n" for line in lines))


def _print_table(measured: dict[str, Any], samples: int, mini_batches: int, noun: str) -> None:
    of, ms = measured.values(), 1e3 / mini_batches
    seconds = [one.seconds.total() for one in of]
    rows = [
        [f"{noun}s/s", *(round(samples / total) for total in seconds)],
        ["times unbatched", *(f"{seconds[0] / total:.2f}" for total in seconds)],
        ["largest difference from unbatched", *(f"{one.difference:.1e}" for one in of)],
        [],
        *([text, *(one.sums[count] for one in of)] for count, text in COUNTS.items()),
        ["gathered, MiB", *(f"{one.sums['gathered_bytes'] / 2**20:,.1f}" for one in of)],
        [],
        *([f"{stage}, ms", *(f"{ms * one.seconds[stage]:.2f}" for one in of)] for stage in next(iter(of)).seconds),
        ["sum per mini-batch, ms", *(f"{ms * total:.2f}" for total in seconds)],
    ]
    print_table(["", *measured], rows)


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
    values: Any  # of all places, arrays [labels]
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
        _measured(probabilities, mini_batches[0], policy)
    measured = {name: Measured() for name in policies}
    bar = tqdm.tqdm(mini_batches, "comparing policies", delay=1, leave=False, disable=None)
    for index, mini_batch in enumerate(bar):
        runs: dict[str, list[_Run]] = {name: [] for name in policies}
        for turn in range(index, index + rounds):
            first = turn % len(policies)
            for name in [*policies][first:] + [*policies][:first]:
                runs[name].append(_measured(probabilities, mini_batch, policies[name]))
        reference = np.concatenate(next(iter(runs.values()))[0].values)
        for name, found in measured.items():
            _add(found, runs[name], reference)
    return measured


def _measured(probabilities: Probabilities, mini_batch: MiniBatch, policy: Policy) -> _Run:
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
