"""`edbatch run`: a model over a whole data set, batched by several policies side by side."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import edbatch as eb
from edbatch.base.files import write_atomically
from edbatch.base.later import Later
from edbatch.cli.arguments import Options, check_output, number, option
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
}


def run(arguments: argparse.Namespace) -> None:
    """Read, learn, compare, write, on the device that was chosen."""
    with eb.device(arguments.device) if arguments.device else nullcontext():
        facts = _run(arguments)
    if arguments.json:
        print_json(facts)
    else:
        _print(facts)


def _run(arguments: argparse.Namespace) -> dict[str, Any]:
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
        first = mini_batches[:LEARN_FROM]
        for _ in range(2):  # the second time counts, once code is there
            start = perf_counter()
            chosen = eb.learn([compare.record(outputs, mini_batch) for mini_batch in first])
        learning = {"mini_batches": len(first), "seconds": perf_counter() - start}
        name = f"{chosen.name} (learned)"
    rounds = -(-LEAST_RUNS // len(mini_batches))
    policies = {rule: eb.get_policy(rule) for rule in RULES} | {name: chosen}
    # That they run again and again is not what is compared, nor what is interpreted until compiling pays.
    with plan_cache.afresh(), compiled.at_once():
        measured = compare.compare(outputs, mini_batches, policies, rounds)
    predictions = measured[name].predictions
    if arguments.out is not None:
        _write_predictions(arguments.out, predictions, labels, workload.root)
    return {
        **{name: getattr(arguments, name) for name in ("model", "data", "seed", "batch_size")},
        "sample": workload.noun,
        "samples": len(samples),
        "place": workload.place,
        "places": sum(len(prediction.best) for prediction in predictions),
        "labels": len(labels),
        "hidden": hidden,
        "device": model.device.name,
        "loaded": arguments.load and str(arguments.load),
        "mini_batches": len(mini_batches),
        "rounds": rounds,
        "policy": name,
        "learning": learning,
        "predictions": arguments.out,
        "policies": [
            {
                "policy": name,
                "samples_per_second": len(samples) / of.total_seconds,
                **of.sums,
                "seconds": of.seconds,
                "largest_difference": of.difference,
            }
            for name, of in measured.items()
        ],
    }


def _write_predictions(path: str, predictions: Sequence[Any], labels: list[Any], root: bool) -> None:
    lines = []
    for best, probability in predictions:
        pairs = list(zip(best.tolist(), probability.tolist(), strict=True))
        lines.append(" ".join(f"{labels[at]} {value:.6f}" for at, value in (pairs[-1:] if root else pairs)))
    write_atomically(path, "".join(f"{line}\n" for line in lines))


def _print(facts: dict[str, Any]) -> None:
    sample, n = facts["sample"], facts["samples"]
    how = f"as {facts['loaded']} has it" if facts["loaded"] else f"random parameters (seed {facts['seed']})"
    device = "" if facts["device"] == "cpu" else f", on {facts['device']}"
    places, labels = counted(facts["places"], facts["place"]), counted(facts["labels"], "label")
    print_heading(facts, how + device, f"{counted(n, sample)}, {places}, {labels}")
    rounds = "once" if facts["rounds"] == 1 else f"{facts['rounds']} times (the median counts)"
    mini_batches = f"{counted(facts['mini_batches'], 'mini-batch')} of {counted(min(facts['batch_size'], n), sample)}"
    print(f"{mini_batches}, each run {rounds} by every policy in turn, after a warm-up")
    if learning := facts["learning"]:
        of = counted(learning["mini_batches"], "mini-batch")
        print(f"policy {facts['policy']} from {of} in {learning['seconds']:.2f} s")
    print()
    policies, per_mini_batch = facts["policies"], 1e3 / facts["mini_batches"]
    seconds = [sum(of["seconds"].values()) for of in policies]
    rows = [
        [f"{sample}s/s", *(round(of["samples_per_second"]) for of in policies)],
        ["times unbatched", *(f"{seconds[0] / total:.2f}" for total in seconds)],
        ["largest difference from unbatched", *(f"{of['largest_difference']:.1e}" for of in policies)],
        [],
        *([text, *(of[count] for of in policies)] for count, text in COUNTS.items()),
        ["gathered, MiB", *(f"{of['gathered_bytes'] / 2**20:,.1f}" for of in policies)],
        [],
    ]
    rows += [
        [f"{stage}, ms", *(f"{per_mini_batch * of['seconds'].get(stage, 0.0):.2f}" for of in policies)]
        for stage in policies[0]["seconds"]
    ]
    rows.append(["sum per mini-batch, ms", *(f"{per_mini_batch * total:.2f}" for total in seconds)])
    print_table(["", *(of["policy"] for of in policies)], rows)
    if facts["predictions"]:
        print(f"wrote {facts['predictions']}: the predictions of {facts['policy']}")
