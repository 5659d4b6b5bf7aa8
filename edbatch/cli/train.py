"""`edbatch train`: a model on labelled data, measured on what is held out, by this process or by several."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

import edbatch as eb
from edbatch.base.files import write_atomically
from edbatch.base.later import Later
from edbatch.cli.arguments import Commands, add_command, add_model, add_option, integer
from edbatch.cli.output import counted, print_json
from edbatch.cli.samples import CHECKPOINT, HELD_OUT, VOCABULARY, Saved, read_labelled
from edbatch.errors import EdBatchError

if TYPE_CHECKING:
    from edbatch.models.workloads import Labelled, Workload

cluster = Later("edbatch.distributed.cluster")

CLIP = 5.0  # largest norm of the gradients
OPTIMIZERS = {
    name.lower(): name for name in ("Adam", "AdamW", "AMSGrad", "SGD", "Momentum", "Adagrad", "RMSProp", "Adadelta")
}
COLUMNS = ("epoch", "loss", "held-out loss", "held-out accuracy")
NARROW = 7  # characters of a column, at least

DESCRIPTION = f"""\
Train a model, and measure it after every epoch on samples that it does not learn from: --held-out, or one in
{HELD_OUT} of --data. The table has the mean loss of an epoch while it was learned from, and of what is held out the
loss and the accuracy.

MODEL and --data are as of `edbatch run`. The loss is the cross-entropy of what is right at every place; the sum over
a mini-batch is minimised, the mean per place is shown. What is right, each after what is right before it:
  trees (tree-lstm, ...)             the label of every node; the accuracy is that of roots
  td-tree-lstm                       at every node its word, or that it has children
  tagger, tagger-characters          the tag of every word
  lattice-lstm, lattice-gru          the tag of every character
  language-model, language-model-fixed
                                     the next word, or the end
  encoder-decoder, attention-decoder
                                     the next word of the translation, or its end
  parser                             the transition that makes the arcs of --data (which must not cross)
  module-network                     the answer of --data (what is made up has none)
  mixture-of-experts                 the class of a point
Samples without labels are left out, and counted. Tables have rows for the words of what is held out, too, which are
not learned.

With --save, the run is a folder that a kill cannot harm: the same command with --resume goes on where it was, with the
same curve, with any number of workers. In it are checkpoint.safetensors (eb.ParameterCollection.load), curve.json, and
vocabulary.json, the words and labels: `edbatch run MODEL --load FOLDER --data FILE --out FILE` predicts by the model.
"""


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "train", run, "train a model, on one process or several", DESCRIPTION)
    add_model(parser, batch_size=25)
    add = parser.add_argument
    add("--held-out", nargs="+", metavar="FILE", help=f"to measure on (default: one in {HELD_OUT} of --data)")
    add_option(parser, "--epochs", "in all, those done before included", 10)
    add("--lr", type=float, default=2e-3, help="learning rate (default: %(default)s)")
    add("--optimizer", choices=OPTIMIZERS, default="adam", help=f"gradients are clipped at {CLIP:g} (default: adam)")
    add("--save", type=Path, metavar="FOLDER", help="of the run; checkpoints are written there")
    add_option(parser, "--save-every", "mini-batches from one checkpoint to the next, beside epochs", 200)
    add("--resume", action="store_true", help="go on with the run in --save, if it has begun")
    add("--workers", type=integer(0), default=0, metavar="N", help="processes that compute, on Ray (default: this one)")
    add("--address", help="of a Ray cluster, as 10.0.0.1:6379; else workers are on this machine")


def run(arguments: argparse.Namespace) -> None:
    """Read, train, measure after every epoch, and print.

    Raises:
        EdBatchError: there is no such model, its data have no labels or cannot be read, the folder holds a run, or
            another one than this; Ray is not installed; and what training raises.
    """
    _check(arguments)
    workload, data = read_labelled(arguments)
    model = eb.ParameterCollection(seed=arguments.seed)
    hidden = arguments.hidden or workload.hidden
    network = workload.network(model, *data.sizes, hidden)
    optimizer = getattr(eb, OPTIMIZERS[arguments.optimizer])(model, lr=arguments.lr, clip=CLIP)
    same = {"optimizer": arguments.optimizer, "lr": arguments.lr, "hidden": hidden}
    with ExitStack() as open:
        run = eb.Run(
            arguments.save or open.enter_context(tempfile.TemporaryDirectory()),
            model, optimizer, lambda batch: workload.losses(network, batch), data.train,
            batch_size=arguments.batch_size, seed=arguments.seed, save_every=arguments.save_every,
            evaluate=lambda: measured(workload, network, data.held_out, arguments.batch_size),
            settings={"model": arguments.model, "data": data.mark, **same},
        )  # fmt: skip
        if arguments.save:
            saved = msgspec.json.encode(Saved(arguments.model, hidden, data.known))
            write_atomically(arguments.save / VOCABULARY, msgspec.json.format(saved, indent=1) + b"\n")
        team = None
        if arguments.workers:
            team = eb.distributed.train(run, arguments.epochs, arguments.workers, address=arguments.address)
        facts = {
            "model": arguments.model,
            "data": arguments.data,
            "samples": len(data.train),
            "held_out": len(data.held_out),
            "skipped": data.skipped,
            "without_labels": data.unlabelled,
            "labels": data.labels,
            **same,
            "seed": arguments.seed,
            "batch_size": arguments.batch_size,
            "resumes": arguments.resume,
            "resumed_at": run.step,
            "saved": arguments.save and str(arguments.save),
        }
        if not arguments.json:
            print(_heading(facts, workload.noun), flush=True)
        try:
            for figures in chain(run.curve.epochs[:], team or run.epochs(arguments.epochs)):  # done before, and now
                if not arguments.json:
                    print(_line(_cell(figures[name]) for name in COLUMNS), flush=True)
        except KeyboardInterrupt:
            if arguments.save and (arguments.save / CHECKPOINT).exists():
                how = "the same command goes on" if arguments.resume else "the same command with --resume goes on"
                print(f"edbatch: {arguments.save} holds a checkpoint; {how} after it", file=sys.stderr)
            raise
    if arguments.json:
        print_json(facts | {"steps": run.step, "epochs": run.curve.epochs, "workers": team and team.report})
    elif team:
        print(team.report)


def measured(workload: Workload, network: Any, samples: list[Labelled], batch_size: int) -> dict[str, float]:
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


def _check(arguments: argparse.Namespace) -> None:
    folder = arguments.save
    if arguments.held_out and not arguments.data:
        raise EdBatchError("--held-out: expected --data as well")
    if arguments.address and not arguments.workers:
        raise EdBatchError("--address: expected --workers as well")
    if arguments.workers:
        cluster.ray()
    if folder is None and arguments.resume:
        raise EdBatchError("--resume: expected --save FOLDER, where the run is")
    if folder and not arguments.resume and os.path.exists(folder / CHECKPOINT):
        raise EdBatchError(f"{folder}: holds a run; expected --resume, to go on with it, or another folder")


def _heading(facts: dict[str, Any], noun: str) -> str:
    optimizer = f"{facts['optimizer']} at {facts['lr']:g}"
    source = " ".join(facts["data"] or ["made up"])
    lines = [
        f"{facts['model']}, hidden size {facts['hidden']:,}, {optimizer}, seed {facts['seed']}",
        f"{source}: {counted(facts['samples'], noun)} to learn from, {facts['held_out']:,} to measure on, "
        f"{counted(facts['labels'], 'label')}",
    ]
    if facts["skipped"]:
        lines.append(f"skipped {counted(facts['skipped'], 'malformed sample')}")
    if facts["without_labels"]:
        lines.append(f"left out {counted(facts['without_labels'], noun)} without labels")
    if facts["resumed_at"]:
        lines.append(f"goes on after {counted(facts['resumed_at'], 'mini-batch')}")
    elif facts["resumes"]:
        lines.append(f"there is no run in {facts['saved']} to go on with: one begins")
    return "\n".join([*lines, "", _line(COLUMNS)])


def _line(cells: Iterable[str]) -> str:
    return "  ".join(cell.rjust(max(NARROW, len(name))) for cell, name in zip(cells, COLUMNS, strict=True))


def _cell(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.4f}"
