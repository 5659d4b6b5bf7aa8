"""Three models beside the same in real DyNet, batched by it: forward, and a step of training by Adam.

DYNET_PYTHON names a Python that has DyNet 2.1.2; see docs/benchmarks.md for how one is built for this machine, as the
wheels use no more than SSE. One thread each, thread CPU time, in turns, from samples to the value of the loss, or to
parameters that Adam has updated; losses and gradients are compared before. Of DyNet the best counts, of its settings
(without autobatch, and with each of both) and of the ways to write a model. Of EdBatch "recorded" is by a Python
function for each sample, every graph a new one; "again" the same where plans are remembered, as they are in programs;
"replayed" with samples that were recorded before, mixed anew each time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from tqdm import tqdm

from edbatch.runtime.plan_cache import afresh
from scripts import data_folder
from scripts.bench.contest import LR, Own, Task, compare, run_of
from scripts.bench.measure import Runs, interleaved
from scripts.bench.process import Process
from scripts.bench.report import Tables, command, source
from scripts.dynet import in_dynet

AUTOBATCH = ("0", "1", "2")
MINI_BATCHES = {1: 64, 64: 4}  # of a round
NEAR = 1.2  # times the fastest of DyNet's settings in a trial: what is slower is not timed


def started(task: Task, own: Own, python: str, first: list[int], stack: ExitStack) -> dict[str, Process]:
    """DyNet's processes, by setting, whose numbers of a mini-batch are those of EdBatch."""
    folder = Path(stack.enter_context(TemporaryDirectory()))
    np.savez(folder / "parameters.npz", **{given.name: given.value() for given in own.model})
    (folder / "samples.json").write_text(json.dumps(task.samples))
    expected = own.values([task.samples[number] for number in first])
    found = {}
    for style in in_dynet.MODELS[task.name]:
        for autobatch in AUTOBATCH:
            flags = ["--dynet-autobatch", autobatch, "--dynet-mem", "512"]
            process = stack.enter_context(Process([python, in_dynet.__file__, *flags]))
            process.ask("task", task.name, style, str(folder), LR)
            loss = np.asarray(process.ask("checked", first))
            with np.load(folder / "gradients.npz") as gradients:
                compare(f"{task.name}, DyNet, {style}", {**gradients, "loss": loss, "": expected[""]}, expected)
            found[f"{style}, autobatch {autobatch}"] = process
    return found


def rows_of(name: str, hidden: int, size: int, rounds: int, python: str) -> list[dict[str, Any]]:
    """Milliseconds of a mini-batch, and how many times as fast as DyNet EdBatch is."""
    task = Task(name, MINI_BATCHES.get(size, 4) * size, data_folder())
    own, count = Own(task, hidden, adam=True), len(task.samples) // size
    batches = [list(range(at, at + size)) for at in range(0, count * size, size)]
    rows = []
    with ExitStack() as stack:
        processes = started(task, own, python, batches[0], stack)
        for what in ("forward", "train"):
            trial = {name: [process.timed(what, batches) for _ in "12"][1] for name, process in processes.items()}
            fastest = min(of["cpu"] for of in trial.values())
            kept = [name for name, of in trial.items() if of["cpu"] < NEAR * fastest]

            def step(given: Any, replays: bool = False, trains: bool = what == "train") -> None:
                if trains:
                    own.step(given, replays)
                else:
                    own.loss(given, replays).value()

            again = run_of(step, task.samples, size)

            def new(again: Any = again) -> None:
                with afresh():
                    again()

            replayed = run_of(lambda given, step=step: step(given, replays=True), task.samples, size)
            sides: dict[str, Any] = {"recorded": new, "again": again, "replayed": replayed}
            sides |= {name: lambda of=processes[name], what=what: of.timed(what, batches) for name in kept}
            runs = interleaved(sides, rounds, warm_ups=3)
            ms = {name: runs[name].ms(count) for name in ("recorded", "again", "replayed")}
            theirs = {name: _answered(runs[name]) for name in kept}
            best = min(theirs, key=lambda name: theirs[name])
            row = {"model": name, "hidden": hidden, "batch": size, "": what, "DyNet, CPU ms": theirs[best]}
            row |= {"DyNet's best": best, **ms}
            rows.append(row | {f"{side}, times as fast": theirs[best] / of for side, of in ms.items()})
    return rows


def _answered(runs: Runs) -> float:
    """The median of what `Process.timed` was told, in milliseconds, in the place of what was waited for."""
    return 1e3 * statistics.median(runs.figures["cpu"])


def tables(given: argparse.Namespace) -> Tables:
    """Everything."""
    python = os.environ.get("DYNET_PYTHON")
    if python is None:
        sys.exit("DYNET_PYTHON names no Python with DyNet; nothing was measured")
    points = list(product(given.model, given.hidden, given.batch))
    rows = [row for point in tqdm(points, disable=None) for row in rows_of(*point, given.rounds, python)]
    return {f"Beside DyNet, {source()}": rows}


models = tuple(in_dynet.MODELS)
main = command(__doc__, tables, rounds=5, remembers=True, hidden=(64, 256), batch=(1, 64), model=models)
