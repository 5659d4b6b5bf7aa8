"""What all training scripts share: the command line, the data, and what is trained and measured how.

A run lives in one folder and goes on from its last checkpoint; see `edbatch.Run`.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import edbatch as eb
from edbatch.base.files import read_text
from edbatch.models.workloads import get_workload
from scripts import data_folder

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
        measure: figures by name from the scores of all labels at every place, and the samples.
    """

    network: Any
    train: list[Sample]
    dev: list[Sample]
    measure: Callable[[Scores, list[Sample]], dict[str, float]]

    def losses(self, batch: list[Sample]) -> list[eb.Expression]:
        """One per label."""
        network = self.network
        return [
            network.cross_entropy(h, label)
            for sample in batch
            for h, label in zip(network.hidden(*sample.inputs), sample.labels, strict=True)
        ]

    def evaluated(self, batch_size: int) -> dict[str, float]:
        """The figures of all samples to measure on."""
        found: Scores = []
        for at in range(0, len(self.dev), batch_size):
            batch = self.dev[at : at + batch_size]
            with eb.Graph(policy="sufficient"):
                scores = [[self.network.scores(h) for h in self.network.hidden(*sample.inputs)] for sample in batch]
                values = iter(eb.forward([score for of_sample in scores for score in of_sample]))
            found += [np.stack([next(values) for _ in of_sample]) for of_sample in scores]
        return self.measure(found, self.dev)


class ProgramTask(NamedTuple):
    """Programs over values, which run together in mini-batches, and what they are to learn.

    Attributes:
        train, dev: samples to learn from, and to measure on.
        loss: from a sample a program that returns its losses.
        answer: from a sample a program that returns what `measure` takes.
        measure: figures by name from all answers, and the samples.
    """

    train: list[Any]
    dev: list[Any]
    loss: Callable[[Any], Any]
    answer: Callable[[Any], Any]
    measure: Callable[[list[Any], list[Any]], dict[str, float]]

    def losses(self, batch: list[Any]) -> list[eb.Expression]:
        """Of all samples."""
        return [loss for of_sample in eb.run([self.loss(sample) for sample in batch]) for loss in of_sample]

    def evaluated(self, batch_size: int) -> dict[str, float]:
        """The figures of all samples to measure on."""
        return self.measure(eb.run(map(self.answer, self.dev), limit=batch_size), self.dev)


class Source(NamedTuple):
    """Where samples come from, for a task that is no workload: fields as of `edbatch.models.workloads.Workload`."""

    generate: Callable[[int, int], list[Any]]
    read: Callable[..., list[Any]] = list
    files: tuple[str, ...] = ()
    folder: tuple[str, ...] = ()


@dataclass(frozen=True)
class Script:
    """What one script adds.

    Attributes:
        doc: of the module; its first line is the help.
        name: of the workload, see `edbatch.models.workloads`, or of a task with a source of its own.
        prepare: from the model, training and measuring samples as they were read, and the size of states.
        source: of samples, if it is not the workload's.
        dev: where the data to measure on is in the folder that EDBATCH_DATA names; none: some is held out.
        defaults: of the command line.
        drawn: figures in the picture; none: all.
    """

    doc: str
    name: str
    prepare: Callable[[eb.ParameterCollection, list[Any], list[Any], int], Task | ProgramTask]
    source: Source | None = None
    dev: tuple[str, ...] = ()
    defaults: dict[str, Any] = field(default_factory=dict)
    drawn: tuple[str, ...] | None = None

    def run(self, arguments: Sequence[str] | None = None) -> eb.Run:
        """Train as the command line says, from the last checkpoint if there is one.

        Raises:
            EdBatchError: bad data, a number out of range, or the folder holds another run.
        """
        options = self._parser().parse_args(arguments)
        for name in ("hidden", "samples"):
            if getattr(options, name) < 1:
                raise eb.EdBatchError(f"--{name} {getattr(options, name)}: expected 1 or more")
        model = eb.ParameterCollection(seed=options.seed)
        train, dev, source = self.data(options)
        task = self.prepare(model, train, dev, options.hidden)
        start = perf_counter()
        run = eb.Run(
            options.out, model, eb.Adam(model, lr=options.lr, clip=options.clip), task.losses, task.train,
            batch_size=options.batch, seed=options.seed, save_every=options.save_every,
            evaluate=lambda: task.evaluated(options.batch),
            settings={"workload": self.name, "data": source, "hidden": options.hidden, "lr": options.lr,
                      "clip": options.clip},
        )  # fmt: skip
        if run.step:
            print(f"{options.out}: goes on after {run.step:,} mini-batches")
            self._draw(run, options.out)  # it may have been killed between checkpoint and picture
        epochs = run.epochs(options.epochs)
        if options.workers:
            epochs = eb.distributed.train(run, options.epochs, options.workers, address=options.address)
        for figures in epochs:
            line = ", ".join(f"{name} {value:.4g}" for name, value in figures.items())
            print(f"{line}; {perf_counter() - start:.0f} s")
            self._draw(run, options.out)
        return run

    def _draw(self, run: eb.Run, folder: Path) -> None:
        if not run.curve.epochs:
            return
        try:
            run.curve.plot(folder / "curve.png", self.drawn)
        except eb.EdBatchError as error:  # without Matplotlib, training goes on
            print(error, file=sys.stderr)

    def main(self) -> None:
        """What the script does when it is run."""
        try:
            self.run()
        except eb.EdBatchError as error:
            sys.exit(f"error: {error}")

    def _parser(self) -> argparse.ArgumentParser:
        source = self.source or get_workload(self.name)
        n, files = len(source.files), ", ".join(source.files)
        parser = argparse.ArgumentParser(
            description=self.doc.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
        )
        add = parser.add_argument
        data = parser.add_argument_group("data (default: made up)")
        if source.folder:
            data.add_argument(
                "--real", action="store_true", help=f"{source.folder[0]} in the folder that EDBATCH_DATA names"
            )
        if source.files:
            data.add_argument("--train", nargs=n, metavar="FILE", help=f"to learn from: {files}")
            data.add_argument("--dev", nargs=n, metavar="FILE", help="to measure on; else some are held out")
        data.add_argument("--samples", type=int, default=2000, help="how many are made up")
        add("--out", type=Path, default=Path("runs") / self.name, help="folder of the run; goes on if it has begun")
        add("--epochs", type=int, default=10)
        add("--batch", type=int, default=25, help="samples of a mini-batch")
        add("--hidden", type=int, default=64, help="size of embeddings and states")
        add("--lr", type=float, default=2e-3, help="learning rate of Adam")
        add("--clip", type=float, default=5.0, help="largest norm of the gradients")
        add("--seed", type=int, default=0)
        add("--workers", type=int, default=0, help="processes that compute, on Ray (extra `ray`); 0: this one alone")
        add("--address", help="of a Ray cluster, as 10.0.0.1:6379; else the workers are on this machine")
        add("--save-every", type=int, default=200, help="mini-batches; there is a checkpoint after every epoch too")
        parser.set_defaults(**{"real": False, "train": None, "dev": None} | self.defaults)
        return parser

    def data(self, options: argparse.Namespace) -> tuple[list[Any], list[Any], str]:
        """Samples to learn from, to measure on, and what tells them from others."""
        samples = self.source or get_workload(self.name)
        train, dev = options.train, options.dev
        if options.real:
            folder = data_folder()
            if folder is None:
                raise eb.EdBatchError("--real: expected EDBATCH_DATA to name a folder with the data")
            train = train or [folder / name for name in samples.folder]
            dev = dev or [folder / name for name in self.dev]
        if dev and not train:
            raise eb.EdBatchError("--dev: expected --train as well")
        if train:
            found = samples.read(*train)
            measured = samples.read(*dev) if dev else []
            contents = [read_text(path) for path in (*train, *(dev or ()))]
            source = f"files {zlib.crc32(''.join(contents).encode()):08x}"
        else:
            found, measured = samples.generate(options.samples, options.seed), []
            source = f"{options.samples} made up"
        if not measured:
            found, measured = [x for i, x in enumerate(found) if i % HELD_OUT], found[::HELD_OUT]
        if not found:
            raise eb.EdBatchError("expected at least two samples, to learn from and to measure on, got one")
        return found, measured, source
