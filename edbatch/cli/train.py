"""`edbatch train`: a model on labelled data, measured on what is held out, by this process or by several."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

import edbatch as eb
from edbatch.base.files import write_atomically
from edbatch.base.later import Later
from edbatch.cli.arguments import Options, flag, number, option
from edbatch.cli.output import counted, print_json
from edbatch.cli.samples import CHECKPOINT, HELD_OUT, MODEL, VOCABULARY, Saved, print_heading, read_labelled
from edbatch.errors import EdBatchError

cluster = Later("edbatch.distributed.cluster")

CLIP = 5.0  # largest norm of the gradients
OPTIMIZERS = {
    name.lower(): name for name in ("Adam", "AdamW", "AMSGrad", "SGD", "Momentum", "Adagrad", "RMSProp", "Adadelta")
}
COLUMNS = ("epoch", "loss", "held-out loss", "held-out accuracy")
HEADER, ROW = "{:>7}  {:>7}  {:>13}  {:>17}", "{:>7}  {:>7.4f}  {:>13.4f}  {:>17.4f}"

HELP = "train a model, on one process or several"
DESCRIPTION = f"""\
Train a model, and measure it after every epoch on samples that it does not learn from: --held-out, or one in
{HELD_OUT} of --data.

MODEL and --data are as of `edbatch run`. The loss is the cross-entropy of what is right at every place; the sum over
a mini-batch is minimised, the mean per place is shown. What is right, each after what is right before it:
  trees (tree-lstm, ...)             the label of every node; the accuracy is that of roots
  td-tree-lstm                       at every node its word, or that it has children
  taggers, lattices                  the tag of every word, or character
  language models, decoders          the next word, or the end; of the translation
  parser                             the transition that makes the arcs of --data (which must not cross)
  module-network                     the answer of --data (what is made up has none)
  mixture-of-experts                 the class of a point
Samples without labels are left out, and counted.

With --save, the run is a folder that a kill cannot harm: the same command with --resume goes on where it was, with any
number of workers. `edbatch run MODEL --load FOLDER --data FILE --out FILE` predicts by the model.
"""
OPTIONS: Options = {
    **MODEL,
    "--batch-size": number("samples", 25),
    "--held-out": option(f"to measure on (default: one in {HELD_OUT} of --data)", "FILE", nargs="+"),
    "--epochs": number("in all, those done before included", 10),
    "--lr": option("learning rate", default=2e-3, type=float),
    "--optimizer": option(f"gradients are clipped at {CLIP:g}", default="adam", choices=OPTIMIZERS),
    "--save": option("of the run; checkpoints are written there", "FOLDER", type=Path),
    "--save-every": number("mini-batches from one checkpoint to the next, beside epochs", 200),
    "--resume": flag("go on with the run in --save, if it has begun"),
    "--workers": number("processes that compute, on Ray; 0: this one", 0, least=0),
    "--address": option("of a Ray cluster, as 10.0.0.1:6379; else workers are on this machine"),
}


def run(arguments: argparse.Namespace) -> None:
    """Read, train, measure after every epoch, and print."""
    if arguments.held_out and not arguments.data:
        raise EdBatchError("--held-out: expected --data as well")
    if arguments.address and not arguments.workers:
        raise EdBatchError("--address: expected --workers as well")
    if arguments.workers:
        cluster.ray()
    folder = arguments.save
    if folder is None and arguments.resume:
        raise EdBatchError("--resume: expected --save FOLDER, where the run is")
    if folder and not arguments.resume and os.path.exists(folder / CHECKPOINT):
        raise EdBatchError(f"{folder}: holds a run; expected --resume, to go on with it, or another folder")
    with tempfile.TemporaryDirectory() as scratch:
        _train(arguments, folder or Path(scratch))


def _train(arguments: argparse.Namespace, folder: Path) -> None:
    workload, data = read_labelled(arguments)
    model = eb.ParameterCollection(seed=arguments.seed)
    hidden = arguments.hidden or workload.hidden
    network = workload.network(model, *data.sizes, hidden)
    optimizer = getattr(eb, OPTIMIZERS[arguments.optimizer])(model, lr=arguments.lr, clip=CLIP)
    same = {"model": arguments.model, "optimizer": arguments.optimizer, "lr": arguments.lr, "hidden": hidden}
    run = eb.Run(
        folder, model, optimizer, lambda batch: workload.losses(network, batch), data.train,
        batch_size=arguments.batch_size, seed=arguments.seed, save_every=arguments.save_every,
        evaluate=lambda: measured(workload, network, data.held_out, arguments.batch_size),
        settings={"data": data.mark, **same},
    )  # fmt: skip
    saved = msgspec.json.encode(Saved(arguments.model, hidden, data.known))
    write_atomically(folder / VOCABULARY, msgspec.json.format(saved, indent=1) + b"\n")
    team = None
    if arguments.workers:
        team = eb.distributed.train(run, arguments.epochs, arguments.workers, address=arguments.address)
    facts = {
        **{name: getattr(arguments, name) for name in ("data", "seed", "batch_size")},
        **data.facts,
        **same,
        "resumes": arguments.resume,
        "resumed_at": run.step,
        "saved": arguments.save and str(arguments.save),
    }
    if not arguments.json:
        _print_heading(facts, workload.noun)
    try:
        for figures in chain(run.curve.epochs[:], team or run.epochs(arguments.epochs)):  # done before, and now
            if not arguments.json:
                print(ROW.format(*(figures[name] for name in COLUMNS)), flush=True)
    except KeyboardInterrupt:
        if arguments.save and (folder / CHECKPOINT).exists():
            how = "the same command goes on" if arguments.resume else "the same command with --resume goes on"
            print(f"edbatch: {folder} holds a checkpoint; {how} after it", file=sys.stderr)
        raise
    if arguments.json:
        print_json(facts | {"steps": run.step, "epochs": run.curve.epochs, "workers": team and team.report})
        return
    if team:
        print(team.report)
    if arguments.save:
        print(f"wrote {folder}: the trained model, for edbatch run {arguments.model} --load {folder}")


def measured(workload: Any, network: Any, samples: list[Any], batch_size: int) -> dict[str, float]:
    """The mean loss of all places, and how many are right: of roots, where it is only they that are predicted."""
    losses, right = [], []
    for at in range(0, len(samples), batch_size):
        batch = samples[at : at + batch_size]
        with eb.Graph(policy="critical-path"):
            scores = workload.scores(network, batch)
            values = iter(eb.forward([score for of_sample in scores for score in of_sample]))
        for of_sample, (_, labels) in zip(scores, batch, strict=True):
            found = [(next(values).astype(np.float64), label) for _, label in zip(of_sample, labels, strict=True)]
            losses += [np.logaddexp.reduce(value) - value[label] for value, label in found]
            right += [int(value.argmax()) == label for value, label in (found[-1:] if workload.root else found)]
    return {"held-out loss": float(np.mean(losses)), "held-out accuracy": float(np.mean(right))}


def _print_heading(facts: dict[str, Any], noun: str) -> None:
    learned_from, labels = counted(facts["samples"], noun), counted(facts["labels"], "label")
    counts = f"{learned_from} to learn from, {facts['held_out']:,} to measure on, {labels}"
    print_heading(facts, f"{facts['optimizer']} at {facts['lr']:g}, seed {facts['seed']}", counts)
    if facts["without_labels"]:
        print(f"left out {counted(facts['without_labels'], noun)} without labels")
    if facts["resumed_at"]:
        print(f"goes on after {counted(facts['resumed_at'], 'mini-batch')}")
    elif facts["resumes"]:
        print(f"there is no run in {facts['saved']} to go on with: one begins")
    print()
    print(HEADER.format(*COLUMNS), flush=True)
