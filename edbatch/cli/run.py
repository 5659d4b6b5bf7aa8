"""`edbatch run`: a model over a whole data set, batched by several policies side by side."""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import edbatch as eb
from edbatch.base.files import write_atomically
from edbatch.base.later import Later
from edbatch.cli.arguments import JSON, Options, check_output, number, option
from edbatch.cli.output import counted, print_json, print_table
from edbatch.cli.samples import CHECKPOINT, MODEL, VOCABULARY, print_heading, read_samples, read_saved
from edbatch.errors import EdBatchError

compare = Later("edbatch.cli.compare")
compiled = Later("edbatch.compiling.compiled")
plan_cache = Later("edbatch.runtime.plan_cache")
workloads = Later("edbatch.models.workloads")

RULES = ("none", "depth", "agenda", "critical-path")  # the first is unbatched: the others are checked against it
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
        raise EdBatchError("--hidden: expected without --load, which says it")
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
        chosen = eb.learn([compare.record(outputs, mini_batch) for mini_batch in mini_batches[:LEARN_FROM]])
        learning, name = chosen.training, f"{chosen.name} (learned)"
    rounds = -(-LEAST_RUNS // len(mini_batches))
    policies = {rule: eb.get_policy(rule) for rule in RULES} | {name: chosen}
    # That they run again and again is not what is compared, nor what is interpreted until compiling pays.
    with plan_cache.afresh(), compiled.at_once():
        measured = compare.compare(outputs, mini_batches, policies, rounds)
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
