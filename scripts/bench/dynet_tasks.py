"""The models of `peers.tasks` beside the same in real DyNet, batched by it: forward, and a step of training.

    DYNET_PYTHON=... EDBATCH_DATA=... python -m scripts.bench.dynet_tasks [--json] [--rounds 5] [--model TreeLSTM]

`DYNET_PYTHON` is a Python that has DyNet 2.1.2; see docs/benchmarks.md for how one is built for this machine, as the
wheels use no more than SSE. One thread each, thread CPU time, in turns, from samples to the value of the loss, or to
parameters that Adam has updated; losses and gradients are compared before. Of DyNet the best counts, of its settings
(without autobatch, and with each of both) and of the ways to write a model. Of EdBatch "recorded" is by a Python
function for each sample, every graph a new one; "again" the same where plans are remembered, as they are in programs;
"replayed" with samples that were recorded before, mixed anew each time. Without EDBATCH_DATA the samples are made up.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from tqdm import tqdm

import edbatch as eb
from edbatch.experiments.measure import Runs, interleaved
from edbatch.experiments.mini_batches import as_tuples
from edbatch.experiments.peers.own import Own
from edbatch.experiments.peers.tasks import MODELS, Task
from edbatch.runtime.remembered import afresh
from scripts import data_folder
from scripts.bench.mini_batches import source
from scripts.bench.process import Process, as_answered
from scripts.bench.report import Tables, command
from scripts.dynet import in_dynet

LR = 1e-5
AUTOBATCH = ("0", "1", "2")
MINI_BATCHES = {1: 64, 64: 4}  # of a round
NEAR = 1.2  # times the fastest of DyNet's settings in a trial: what is slower is not timed
ASKED = {("train", 64): 2.5, ("train", 256): 1.8}
RUNS = ("forward", "train")


class Sides:
    """EdBatch and DyNet with the same parameters and samples.

    Args:
        task, hidden, size: the model, the size of its states, samples of a mini-batch.
        python: that has DyNet.
        stack: that ends DyNet's processes.

    Attributes:
        batches: numbers of samples.
        processes: with DyNet, by setting; `kept` are the names of those that are timed.
    """

    def __init__(self, task: Task, hidden: int, size: int, python: str, stack: ExitStack) -> None:
        count = MINI_BATCHES.get(size, 4)
        self.task, self.hidden = task, hidden
        self.samples = task.samples[: count * size]
        self.batches = [list(range(at, at + size)) for at in range(0, len(self.samples), size)]
        self.recorded, self.replayed = self._own(False), self._own(True)
        self._mixed, self._random = [as_tuples(sample) for sample in self.samples], Random(0)
        folder = stack.enter_context(TemporaryDirectory())
        np.savez(Path(folder) / "parameters.npz", **{given.name: given.value() for given in self.recorded.model})
        (Path(folder) / "samples.json").write_text(json.dumps(self.samples))
        self.processes: dict[str, Process] = {}
        self.kept: list[str] = []
        for style in in_dynet.MODELS[task.name]:
            for autobatch in AUTOBATCH:
                flags = ["--dynet-autobatch", autobatch, "--dynet-mem", "512"]
                process = stack.enter_context(Process([python, in_dynet.__file__, *flags]))
                process.ask("task", task.name, style, folder, LR)
                self._compare(process, Path(folder))
                self.processes[f"{style}, autobatch {autobatch}"] = process

    def _own(self, replays: bool) -> Own:
        return Own(self.task, self.hidden, optimizer=lambda model: eb.Adam(model, lr=LR), replays=replays)

    def _compare(self, process: Process, folder: Path) -> None:
        """DyNet's loss and gradients of a mini-batch with ours; the program ends if they differ."""
        loss = self.recorded.loss([self.samples[number] for number in self.batches[0]])
        loss.backward()
        theirs = process.ask("checked", self.batches[0])
        gradients = np.load(folder / "gradients.npz")
        pairs = {given.name: (given.grad(), gradients[given.name]) for given in self.recorded.model}
        self.recorded.model.zero_grad()
        differs = [name for name, (own, other) in pairs.items() if np.abs(own - other).max() > 1e-4 * np.abs(own).max()]
        if differs or abs(float(loss.value()) - theirs) > 1e-4 * abs(theirs):
            sys.exit(f"{self.task.name}: loss {loss.value()}, in DyNet {theirs}; gradients that differ: {differs}")

    def keep_best(self, what: str) -> None:
        """Of DyNet's settings only those that may be the best; the others would take most of the time."""
        for process in self.processes.values():
            process.ask(what, self.batches)
        cpu = {name: process.timed(what, self.batches)["cpu"] for name, process in self.processes.items()}
        self.kept = [name for name, seconds in cpu.items() if seconds < NEAR * min(cpu.values())]

    def functions(self, what: str) -> dict[str, Callable[[], Any]]:
        """By side, what goes through all mini-batches."""

        def own(step: Callable[[list[Any]], Any], mixes: bool = False) -> None:
            if mixes:
                self._random.shuffle(self._mixed)
            samples = self._mixed if mixes else self.samples
            for numbers in self.batches:
                step([samples[number] for number in numbers])

        def new() -> None:
            with afresh():
                own(steps[0])

        sides = (self.recorded, self.replayed)
        steps = [side.step if what == "train" else lambda given, side=side: side.loss(given).value() for side in sides]
        ours = {"recorded": new, "again": lambda: own(steps[0]), "replayed": lambda: own(steps[1], True)}
        asked = {name: lambda process=self.processes[name]: process.timed(what, self.batches) for name in self.kept}
        return ours | asked


def row(sides: Sides, what: str, rounds: int) -> dict[str, Any]:
    """Milliseconds of a mini-batch, and how many times as fast as DyNet EdBatch is."""
    sides.keep_best(what)
    found = interleaved(sides.functions(what), rounds, warm_ups=3)
    number = len(sides.batches)

    def ms(runs: Runs, per: int) -> float:
        return 1e3 * statistics.median(runs.cpu) / per

    theirs = {name: ms(as_answered(found[name]), 1) for name in sides.kept}
    ours = {name: ms(found[name], number) for name in ("recorded", "again", "replayed")}
    best = min(theirs, key=lambda name: theirs[name])
    size = len(sides.batches[0])
    return {
        "model": sides.task.name,
        "hidden": sides.hidden,
        "batch": size,
        "": what,
        "DyNet, CPU ms": theirs[best],
        "DyNet's best": best,
        **{f"{name}, CPU ms": own for name, own in ours.items()},
        **{f"{name}, times as fast": theirs[best] / own for name, own in ours.items()},
        "asked": ASKED.get((what, sides.hidden), "") if size > 1 else "",
    }


def parts(sides: Sides, rounds: int) -> list[dict[str, Any]]:
    """By setting, what DyNet takes for recording a graph, and from there to its value."""
    rows = []
    for name, process in sides.processes.items():
        found = zip(*(process.ask("parts", sides.batches) for _ in range(rounds)), strict=True)
        recording, computing = (1e3 * statistics.median(part) for part in found)
        rows.append(
            {
                "model": sides.task.name,
                "hidden": sides.hidden,
                "batch": len(sides.batches[0]),
                "DyNet": name,
                "recording, CPU ms": recording,
                "from there to the value, CPU ms": computing,
            }
        )
    return rows


def tables(given: argparse.Namespace) -> Tables:
    """Everything."""
    python = os.environ.get("DYNET_PYTHON")
    if python is None:
        sys.exit("DYNET_PYTHON names no Python with DyNet; nothing was measured")
    rows, computing = [], []
    names = given.model or list(MODELS)
    points = [(name, hidden, size) for name in names for hidden in given.hidden for size in given.batch]
    for name, hidden, size in tqdm(points, disable=None):
        with ExitStack() as stack:
            task = MODELS[name](data_folder())
            gc.freeze()  # the data is no garbage
            sides = Sides(task, hidden, size, python, stack)
            rows += [row(sides, what, given.rounds) for what in RUNS]
            computing += parts(sides, given.rounds)
    return {f"Beside DyNet on {source()}": rows, "DyNet's forward run in two parts": computing}


main = command(
    __doc__,
    tables,
    rounds=5,
    remembers=True,
    hidden=(64, 256),
    batch=(1, 64),
    model={"nargs": "+", "choices": list(MODELS), "help": "default: all"},
)

if __name__ == "__main__":
    main()
