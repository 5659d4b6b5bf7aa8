"""One command that checks and measures EdBatch on a GPU: correctness, then times beside PyTorch, in ten minutes.

    EDBATCH_DATA=... python -m scripts.gpu.check --json > gpu.json
    python -m scripts.gpu.check --quick                       # two minutes: is it right, and one point of each model
    python -m scripts.gpu.check --device cpu --batch 4 --hidden 16 --tests 0     # the same code without a GPU

Needs the extras `bench`, `test`, and `cuda12` or `cuda13`. Three models are compared with the CPU and with float64;
then the points at which they are compared and those of the paper's table 5 are measured; then tests run on the device;
then all other points, until `--minutes` are over: what did not run is listed. PyTorch's networks have the same
parameters. Threads, streams, memory that ends and a process that is killed are tried.

All parts run in a process of their own, which begins anew after one that failed: neither an error, nor a fault that
ends the process or leaves the GPU unusable, nor a part that takes too long keeps the others from running. Interrupted,
or ended by SIGTERM, it prints what was found out. The exit code is 1 if something is wrong or failed.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable
from functools import cache
from itertools import product
from time import perf_counter
from typing import Any

import torch
from tqdm import tqdm

from edbatch.compiling.compiled import at_once
from edbatch.errors import EdBatchError
from edbatch.kernels.cuda.cupy_driver import open_driver
from edbatch.runtime.plan_cache import afresh
from scripts import data_folder
from scripts.bench.contest import Task
from scripts.bench.report import Tables, command
from scripts.gpu import correctness, epochs, measure, robust
from scripts.gpu.measure import OWN, Point
from scripts.gpu.suite import run_tests
from scripts.gpu.worker import Failed, Worker

MODELS = ("tree-lstm", "tagger", "lattice-lstm")
PAPER = {(10, 256): 2.78, (10, 512): 4.70, (20, 256): 3.52, (20, 512): 4.82}  # ms by batch and hidden: its table 5
TIMES = ("Times", "The paper's table 5")
LIMIT = 90  # seconds that a part may take
SAMPLES = 1000  # of which mini-batches are drawn


@cache
def task_of(model: str) -> Task:
    """A model's samples."""
    return Task(model, SAMPLES, data_folder())


def machine(device: str) -> dict[str, Any]:
    """The GPU."""
    properties = torch.cuda.get_device_properties(torch.device(device).index or 0)
    capability = f"{properties.major}.{properties.minor}"
    found = {"GPU": properties.name, "memory, GB": 1e-9 * properties.total_memory, "compute capability": capability}
    return found | {"CUDA of PyTorch": torch.version.cuda, "multiprocessors": properties.multi_processor_count}


def correct(model: str, device: str, hidden: int, size: int) -> list[dict[str, Any]]:
    """See `correctness.check`."""
    return correctness.check(task_of(model), device, hidden, size)


def measured(point: Point, device: str, rounds: int) -> list[dict[str, Any]]:
    """See `measure.measured`."""
    torch.set_num_threads(1)
    with afresh(), at_once():
        return measure.measured(task_of(point.model), point, device, rounds, seconds=4)


def in_epochs(model: str, device: str, n: int) -> list[dict[str, Any]]:
    """See `epochs.epochs`."""
    with at_once():
        return epochs.epochs(task_of(model), device, 20, 512, n)


def points_of(given: argparse.Namespace) -> tuple[list[Point], list[Point]]:
    """Those that come before the tests, and the others, the most important first."""
    batch, hidden = given.batch[0], given.hidden[0]
    first = [Point(model, batch, hidden, training) for training in (False, True) for model in given.model]
    others = []
    if given.device != "cpu":
        first += [Point("tree-lstm", *at) for at in PAPER if "tree-lstm" in given.model]
        lower = product(("tf32", "bf16"), (False, True), given.model)
        others = [Point(model, batch, hidden, training, precision) for precision, training, model in lower]
    sweep = product(given.batch, given.hidden, (False, True), given.model)
    others += [Point(model, *at) for *at, model in sweep]
    return first, [point for point in others if point not in first]


class Check:
    """A run of the whole check: parts one after another, until time is over.

    Attributes:
        tables: everything that was found out.
    """

    def __init__(self, given: argparse.Namespace) -> None:
        if given.quick:
            given.minutes, given.tests, given.rounds = min(given.minutes, 2), 0, min(given.rounds, 5)
            given.batch, given.hidden = [20], [512]
        self.given, self._until = given, perf_counter() + 60 * given.minutes
        self.tables: dict[str, list[Any]] = {
            name: [] for name in ("GPU", "Correctness", "Robust", "Epochs", *TIMES, "Tests", "Failed", "Not run")
        }
        self._worker = Worker()

    def run(self) -> None:
        """All of it."""
        given = self.given
        first, others = points_of(given)
        try:
            if given.device != "cpu":
                self._part("the GPU", lambda found: self.tables["GPU"].append(found), machine, given.device)
            sizes = ((given.hidden[0], 16), (37, 5))  # 37: rows that are no multiple of 16 bytes
            for (hidden, size), model in tqdm(list(product(sizes, given.model)), "correctness", disable=None):
                name = f"{model}, correctness at hidden {hidden}"
                self._part(name, self.tables["Correctness"].extend, correct, model, given.device, hidden, size)
            if given.device != "cpu":
                self._part("robust", self.tables["Robust"].extend, robust.checks, given.device)
                for n in (20, 200):
                    self._part(
                        f"{n} mini-batches", self.tables["Epochs"].extend, in_epochs, "tree-lstm", given.device, n
                    )
            self._points(first)
            if given.quick:
                return
            if given.tests and (left := self._until - perf_counter()) > 0:
                self.tables["Tests"].append(run_tests(given.device, min(given.tests, left)))
            self._points(others)
        finally:
            self._worker.end()

    def _points(self, todo: list[Point]) -> None:
        for point in tqdm(todo, "points", disable=None):
            self._part(str(point), self._keep, measured, point, self.given.device, self.given.rounds)

    def _keep(self, rows: list[dict[str, Any]]) -> None:
        self.tables["Times"] += rows
        for row in rows:
            theirs = PAPER.get((row["batch"], row["hidden"]))
            if theirs and (row["model"], row["mode"], row["by"]) == ("tree-lstm", "forward", OWN):
                found = {"batch": row["batch"], "hidden": row["hidden"], "ms": row["ms"], "the paper's ms": theirs}
                self.tables["The paper's table 5"].append(found)

    def _part(self, name: str, keep: Callable[[Any], None], part: Callable[..., Any], *given: Any) -> None:
        """Keep what a part returns, or why it returns nothing."""
        left = self._until - perf_counter()
        if left <= 0:
            self.tables["Not run"].append({"part": name})
            return
        try:
            keep(self._worker.run(min(LIMIT, left), part, *given))
        except Failed as error:
            self.tables["Failed"].append({"part": name, "error": str(error)})


def right(tables: Tables) -> bool:
    """Whether nothing is wrong, and nothing failed."""
    checked = [row["right"] for name in ("Correctness", "Robust", "Tests") for row in tables.get(name, ())]
    return "Failed" not in tables and all(checked)


def tables(given: argparse.Namespace) -> Tables:
    """Everything, or what there is of it if it is ended before."""
    if given.device != "cpu":
        try:
            open_driver(torch.device(given.device).index or 0)
        except EdBatchError as missing:
            sys.exit(str(missing))
        if not torch.cuda.is_available():
            sys.exit(f"--device {given.device}: PyTorch {torch.__version__} finds no GPU; install a build for CUDA")
    check = Check(given)
    try:
        check.run()
    except KeyboardInterrupt:
        check.tables["Failed"].append({"part": "all", "error": "interrupted"})
    return {name: rows for name, rows in check.tables.items() if rows}


main = command(
    __doc__,
    tables,
    device={"default": "cuda", "help": "cuda, cuda:1, ... or cpu (default: cuda)"},
    minutes={"type": float, "default": 9, "help": "time for everything (default: 9)"},
    quick={"action": "store_true", "help": "two minutes: correctness, and each model at batch 20, hidden 512"},
    tests={"type": float, "default": 90, "help": "seconds for tests; 0: none (default: 90)"},
    model=MODELS,
    batch=(64, 1, 16, 256),
    hidden=(256, 64, 512, 1024),
)

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what there is is printed
    sys.exit(not right(main()))
