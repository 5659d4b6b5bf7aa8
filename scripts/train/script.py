"""What all training scripts share: command line, mini-batches, checkpoints, the learning curve.

A run lives in one folder. `checkpoint.safetensors` is its whole state: parameters, what the trainer remembers,
settings, mini-batches done, the curve so far. It is replaced in one step, so a run that is killed at any moment goes on
from its last checkpoint, with the same curve as if it had never stopped. The order of the samples follows from the seed
and the epoch; nothing else is random.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

import edbatch as eb
from edbatch.files import read_text, write_atomically
from edbatch.models.workloads import get_workload

Scores = list[np.ndarray]  # per sample [places, labels]
HELD_OUT = 10  # without a file of its own, one sample in so many is for measuring


class Sample(NamedTuple):
    """What the network's `hidden` takes, and the label of each vector that it returns."""

    inputs: tuple[Any, ...]
    labels: Sequence[int]


class Task(NamedTuple):
    """A network and what it is to learn.

    Attributes:
        network: has `hidden` and what a `Classifier` has.
        train, dev: samples to learn from, and to measure on.
        measure: figures by name from the scores of all labels at every place, and the samples. The first figure is what
            the best epoch is told by; more is better.
    """

    network: Any
    train: list[Sample]
    dev: list[Sample]
    measure: Callable[[Scores, list[Sample]], dict[str, float]]


@dataclass(frozen=True)
class Script:
    """What one script adds.

    Attributes:
        description: of the command line.
        name: of the workload, see `edbatch.models.workloads`.
        prepare: from the model, training and measuring samples as they were read, and the size of states.
        train, dev: where the real data is in the folder that EDBATCH_DATA names; no `dev`: some is held out.
        defaults: of the command line.
    """

    description: str
    name: str
    prepare: Callable[[eb.ParameterCollection, list[Any], list[Any], int], Task]
    train: tuple[str, ...]
    dev: tuple[str, ...]
    defaults: dict[str, Any]

    def run(self, arguments: Sequence[str] | None = None) -> dict[str, Any]:
        """Train as the command line says, from the last checkpoint if there is one; returns the learning curve.

        Raises:
            EdBatchError: bad data, a number out of range, or the folder holds another run.
        """
        options = self._parser().parse_args(arguments)
        for name in ("epochs", "batch", "hidden", "samples", "checkpoint_every"):
            if getattr(options, name) < 1:
                raise eb.EdBatchError(f"--{name.replace('_', '-')} {getattr(options, name)}: expected 1 or more")
        if options.seed < 0:
            raise eb.EdBatchError(f"--seed {options.seed}: expected 0 or more")
        train, dev, source = self.data(options)
        model = eb.ParameterCollection(seed=options.seed)
        task = self.prepare(model, train, dev, options.hidden)
        trainer = eb.Adam(model, lr=options.lr, clip=options.clip)
        named = ("batch", "hidden", "lr", "clip", "seed")
        settings = {"workload": self.name, "data": source} | {name: getattr(options, name) for name in named}
        return _train(task, model, trainer, Checkpoint(options.out, settings), options)

    def main(self) -> None:
        """What the script does when it is run."""
        try:
            self.run()
        except eb.EdBatchError as error:
            sys.exit(f"error: {error}")

    def _parser(self) -> argparse.ArgumentParser:
        files = get_workload(self.name).files
        parser = argparse.ArgumentParser(
            description=self.description, formatter_class=argparse.ArgumentDefaultsHelpFormatter
        )
        add = parser.add_argument
        data = parser.add_argument_group("data (default: made up)")
        data.add_argument("--real", action="store_true", help=f"{self.train[0]} in the folder that EDBATCH_DATA names")
        data.add_argument("--train", nargs=len(files), metavar="FILE", help=f"to learn from: {', '.join(files)}")
        data.add_argument("--dev", nargs=len(files), metavar="FILE", help="to measure on; else some are held out")
        data.add_argument("--samples", type=int, default=2000, help="how many are made up")
        add("--out", type=Path, default=Path("runs") / self.name, help="folder of the run; goes on if it has begun")
        add("--epochs", type=int, default=10)
        add("--batch", type=int, default=25, help="samples of a mini-batch")
        add("--hidden", type=int, default=64, help="size of embeddings and states")
        add("--lr", type=float, default=2e-3, help="learning rate of Adam")
        add("--clip", type=float, default=5.0, help="largest norm of the gradients")
        add("--seed", type=int, default=0)
        add("--checkpoint-every", type=int, default=200, help="mini-batches; there is one after every epoch too")
        parser.set_defaults(**self.defaults)
        return parser

    def data(self, options: argparse.Namespace) -> tuple[list[Any], list[Any], str]:
        """Samples to learn from, to measure on, and what tells them from others."""
        workload = get_workload(self.name)
        train, dev = options.train, options.dev
        if options.real:
            folder = os.environ.get("EDBATCH_DATA")
            if not folder or not Path(folder).is_dir():
                raise eb.EdBatchError(f"--real: expected a folder in EDBATCH_DATA, found {folder or 'nothing'!r}")
            train = train or [Path(folder) / name for name in self.train]
            dev = dev or [Path(folder) / name for name in self.dev]
        if dev and not train:
            raise eb.EdBatchError("--dev: expected --train as well")
        if train:
            found = workload.read(*train)
            measured = workload.read(*dev) if dev else []
            contents = [read_text(path) for path in (*train, *(dev or ()))]
            source = f"files {zlib.crc32(''.join(contents).encode()):08x}"
        else:
            found, measured = workload.generate(options.samples, options.seed), []
            source = f"{options.samples} made up"
        if not measured:
            found, measured = [x for i, x in enumerate(found) if i % HELD_OUT], found[::HELD_OUT]
        if not found:
            raise eb.EdBatchError("expected at least two samples, to learn from and to measure on, got one")
        return found, measured, source


class Checkpoint:
    """The state of a run, in one file of its folder.

    Args:
        folder: made if it is not there.
        settings: what the curve depends on; a run with others cannot go on here.

    Attributes:
        step: mini-batches done.
        curve: the loss per label of every mini-batch, and the figures of every epoch.
    """

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self.folder = folder
        self.settings = settings
        self.step = 0
        self.curve: dict[str, list[Any]] = {"loss": [], "epochs": []}
        self._path = folder / "checkpoint.safetensors"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise eb.EdBatchError(f"{folder}: cannot be made ({error.strerror})") from error

    def load(self, model: eb.ParameterCollection, trainer: Any) -> None:
        """Go back to the last checkpoint, if there is one.

        Raises:
            EdBatchError: it is damaged, was made with other settings, or by something else.
        """
        if not self._path.exists():
            return
        found = model.load(self._path, trainer=trainer, strict=False)  # settings first: they say why it does not fit
        try:
            settings, step, curve = (found.metadata[name] for name in ("settings", "step", "curve"))
        except KeyError as error:
            raise eb.EdBatchError(f"{self._path}: not a checkpoint of a training script (no {error})") from None
        differ = [f"{key} {settings[key]}, now {now}" for key, now in self.settings.items() if settings[key] != now]
        if differ:
            raise eb.EdBatchError(
                f"{self._path}: this run began with {'; '.join(differ)}; expected the same, or another folder (--out)"
            )
        if found.left:
            raise eb.EdBatchError(f"{self._path}: does not fit: {found.left}")
        self.step, self.curve = step, curve

    def save(self, model: eb.ParameterCollection, trainer: Any) -> None:
        """Replace the last checkpoint.

        Raises:
            EdBatchError: it cannot be written; the last one is intact.
        """
        metadata = {"settings": self.settings, "step": self.step, "curve": self.curve}
        model.save(self._path, trainer=trainer, metadata=metadata)


def _train(
    task: Task, model: eb.ParameterCollection, trainer: Any, checkpoint: Checkpoint, options: argparse.Namespace
) -> dict[str, Any]:
    start = perf_counter()
    policy = eb.learn([_loss(task, batch).graph.typed_graph() for batch in _first(task.train, options)], progress=False)
    checkpoint.load(model, trainer)
    begun, steps = checkpoint.step, -(-len(task.train) // options.batch)
    if begun:
        print(f"{options.out}: goes on after {begun:,} mini-batches")
        _show(checkpoint, steps)  # it may have been killed between checkpoint and curve
    for epoch in range(begun // steps, options.epochs):
        order = np.random.default_rng([options.seed, epoch]).permutation(len(task.train))
        batches = [order[at : at + options.batch].tolist() for at in range(0, len(order), options.batch)]
        done = checkpoint.step - epoch * steps
        with tqdm(total=steps, initial=done, desc=f"epoch {epoch + 1}", unit="mini-batch", disable=None) as bar:
            for chosen in batches[done:]:
                batch = [task.train[i] for i in chosen]
                loss = _loss(task, batch, policy)
                loss.backward()
                trainer.update()
                checkpoint.curve["loss"].append(float(loss.value()) / sum(len(sample.labels) for sample in batch))
                checkpoint.step += 1
                bar.set_postfix(loss=f"{checkpoint.curve['loss'][-1]:.3f}", refresh=False)
                bar.update()
                if checkpoint.step % options.checkpoint_every == 0 and checkpoint.step % steps:
                    checkpoint.save(model, trainer)
        figures = task.measure(_scores(task, options.batch), task.dev)
        loss_of_epoch = float(np.mean(checkpoint.curve["loss"][-steps:]))
        checkpoint.curve["epochs"].append({"epoch": epoch + 1, "loss": loss_of_epoch, **figures})
        checkpoint.save(model, trainer)
        _show(checkpoint, steps)
        line = ", ".join(f"{name} {value:.4g}" for name, value in checkpoint.curve["epochs"][-1].items())
        print(f"{line}; {perf_counter() - start:.0f} s")
    return checkpoint.curve


def _loss(task: Task, batch: list[Sample], policy: eb.Policy | None = None) -> eb.Expression:
    """The sum of the cross-entropies of a mini-batch."""
    network = task.network
    with eb.Graph(policy=policy):
        return eb.sum([network.cross_entropies(network.hidden(*sample.inputs), sample.labels) for sample in batch])


def _first(samples: list[Sample], options: argparse.Namespace) -> Iterator[list[Sample]]:
    """Mini-batches to learn the batching policy from: always the same, also in a run that goes on."""
    for at in range(0, min(2 * options.batch, len(samples)), options.batch):
        yield samples[at : at + options.batch]


def _scores(task: Task, batch: int) -> Scores:
    """Of all labels at every place of the samples to measure on."""
    found: Scores = []
    for at in range(0, len(task.dev), batch):
        with eb.Graph(policy="sufficient"):
            scores = [
                [task.network.scores(h) for h in task.network.hidden(*sample.inputs)]
                for sample in task.dev[at : at + batch]
            ]
            values = iter(eb.forward([score for of_sample in scores for score in of_sample]))
        found += [np.stack([next(values) for _ in of_sample]) for of_sample in scores]
    return found


def _show(checkpoint: Checkpoint, steps: int) -> None:
    """Write the curve as JSON and, where Matplotlib is installed, as PNG; nothing before the end of an epoch."""
    epochs = checkpoint.curve["epochs"]
    if not epochs:
        return
    curve = {"settings": checkpoint.settings, **checkpoint.curve}
    write_atomically(checkpoint.folder / "curve.json", json.dumps(curve, indent=1))
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("no curve.png: Matplotlib is not installed; expected pip install 'edbatch[plot]'", file=sys.stderr)
        return
    figure = Figure(figsize=(7, 2.8), dpi=80, layout="constrained")
    left, right = figure.subplots(1, 2)
    losses = checkpoint.curve["loss"]
    window = max(1, steps // 10)
    smooth = np.convolve(losses, np.ones(window) / window, "valid")
    left.plot((np.arange(len(smooth)) + window) / steps, smooth)
    left.set(xlabel="epoch", ylabel="training loss per label")
    for name in epochs[0]:
        if name not in ("epoch", "loss", "perplexity"):
            right.plot([x["epoch"] for x in epochs], [x[name] for x in epochs], marker=".", label=name)
    right.set(xlabel="epoch", ylabel="on dev")
    right.legend()
    for axes in (left, right):
        axes.grid(alpha=0.3)
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png")
    write_atomically(checkpoint.folder / "curve.png", drawn.getvalue())
