"""`edbatch train`: a model on labelled data, measured on what is held out, by this process or by several."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import zlib
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

import edbatch as eb
from edbatch.base.files import write_atomically
from edbatch.base.lazy import LazyModule
from edbatch.cli.arguments import Options, flag, number, option
from edbatch.cli.output import counted
from edbatch.cli.samples import CHECKPOINT, MODEL, VOCABULARY, Saved, print_heading, read_samples
from edbatch.errors import EdBatchError

cluster = LazyModule("edbatch.distributed.cluster")
workloads = LazyModule("edbatch.models.workloads")

HELD_OUT = 10  # without --held-out, one sample in so many is measured on
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
        raise EdBatchError("--held-out: give --data, too")
    if arguments.address and not arguments.workers:
        raise EdBatchError("--address: give --workers, too")
    if arguments.workers:
        cluster.ray()
    folder = arguments.save
    if folder is None and arguments.resume:
        raise EdBatchError("--resume: give --save FOLDER, the run's folder, too")
    if folder and not arguments.resume and os.path.exists(folder / CHECKPOINT):
        raise EdBatchError(f"{folder}: holds a run; continue it with --resume, or choose another folder")
    with tempfile.TemporaryDirectory() as scratch:
        _train(arguments, folder or Path(scratch))


def _train(arguments: argparse.Namespace, folder: Path) -> None:
    workload = workloads.get_workload(arguments.model)
    train, held_out = _read(workload, arguments)
    mark = zlib.crc32(repr((train, held_out)).encode())  # not of the files: a pipe is read once
    learned, checked = ([x for x in some if workload.right(x) is not None] for some in (train, held_out))
    if not learned or not checked:
        what = "to measure on" if learned else "to learn from"
        raise EdBatchError(f"{arguments.model}: expected {workload.noun}s with labels {what}, got none")
    known, n = workload.know(learned + checked), len(learned)
    samples, numbered = workload.labelled(learned + checked, known)
    model = eb.ParameterCollection(seed=arguments.seed)
    hidden = arguments.hidden or workload.hidden
    network = workload.network(model, *numbered.sizes, hidden)
    optimizer = getattr(eb, OPTIMIZERS[arguments.optimizer])(model, lr=arguments.lr, clip=CLIP)
    same = {name: getattr(arguments, name) for name in ("model", "optimizer", "lr")}
    run = eb.Run(
        folder, model, optimizer, lambda batch: workload.losses(network, batch), samples[:n],
        batch_size=arguments.batch_size, seed=arguments.seed, save_every=arguments.save_every,
        evaluate=lambda: measured(workload, network, samples[n:], arguments.batch_size),
        settings={"data": mark, **same, "hidden": hidden},
    )  # fmt: skip
    saved = msgspec.json.encode(Saved(arguments.model, hidden, known))
    write_atomically(folder / VOCABULARY, msgspec.json.format(saved, indent=1) + b"\n")
    team = None
    if arguments.workers:
        team = eb.distributed.train(run, arguments.epochs, arguments.workers, address=arguments.address)
    labels = counted(len(numbered.labels), "label")
    counts = f"{counted(n, workload.noun)} to learn from, {len(samples) - n:,} to measure on, {labels}"
    how = f"{arguments.optimizer} at {arguments.lr:g}, seed {arguments.seed}"
    print_heading(arguments.model, hidden, how, arguments.data, counts)
    if without := len(train) + len(held_out) - len(samples):
        print(f"left out {counted(without, workload.noun)} without labels")
    if run.step:
        print(f"goes on after {counted(run.step, 'mini-batch')}")
    elif arguments.resume:
        print(f"there is no run in {folder} to go on with: one begins")
    print(f"\n{HEADER.format(*COLUMNS)}", flush=True)
    try:
        for figures in chain(run.curve.epochs[:], team or run.epochs(arguments.epochs)):  # done before, and now
            print(ROW.format(*(figures[name] for name in COLUMNS)), flush=True)
    except KeyboardInterrupt:
        if arguments.save and (folder / CHECKPOINT).exists():
            print(f"edbatch: {folder} holds a checkpoint; the same command with --resume goes on", file=sys.stderr)
        raise
    if team:
        print(team.report)
    if arguments.save:
        print(f"wrote {folder}: the trained model, for edbatch run {arguments.model} --load {folder}")


def _read(workload: Any, arguments: argparse.Namespace) -> tuple[list[Any], list[Any]]:
    """Samples to learn from, and to measure on."""
    if workload.right is None:
        known = ", ".join(name for name, other in workloads.WORKLOADS.items() if other.right)
        raise EdBatchError(f"the data of {arguments.model} have no labels to learn from; expected one of {known}")
    found = read_samples(workload, arguments)
    if arguments.held_out:
        return found, workload.read(*arguments.held_out, skip_bad=arguments.skip_bad)
    return [x for i, x in enumerate(found) if i % HELD_OUT], found[::HELD_OUT]


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
