"""One command that checks and measures EdBatch on a GPU: correctness, then throughput against PyTorch, in ten minutes.

    EDBATCH_DATA=... python -m scripts.gpu.check --json gpu.json > gpu.md
    python -m scripts.gpu.check --device cpu --quick        # the same code, in two minutes, without a GPU

Needs the extras `bench`, `test`, and `cuda12` or `cuda13`. Without EDBATCH_DATA the samples are made up. First
TreeLSTM, BiLSTM tagger and LatticeLSTM are compared with the CPU and with float64; then the device's ceilings and the
points that figures are asked for are measured; then tests run on the device; then all other points, the most important
first, until `--minutes` are over: what did not run is listed. PyTorch's networks have the same parameters (the tests
compare them): per sample, batched by hand, compiled, and captured as CUDA graphs.

On a GPU all parts run in a process of their own, which begins anew after one that failed: neither an error, nor a fault
that ends the process or leaves the GPU unusable, nor a part that takes too long keeps the others from running. What was
found out is in the file before the next part begins.

What the columns mean:

- ms: from samples to the device being done, median of mini-batches, each of another structure; EdBatch's from
  recording in Python on, PyTorch's with what the host prepares. "ms prepared" is without that preparation; "ms in a
  row" is per mini-batch (of others) when nobody waits between them, and sentences/s follow from it.
- host ms: until everything is enqueued. device ms: in which a kernel or a copy ran (by CUPTI, in a run of its own).
- waits: how often the host waited for the device; allocations: calls of CUDA for memory (by CUPTI, in the same run).
- ratio: ms over EdBatch's ms, how many times as fast EdBatch is; "ratio prepared" (of EdBatch all is counted) and
  "ratio in a row" likewise.
- GFLOP: of the model's matrix products, however they are batched. MB: what must be moved at least.
  The fractions are of the ceilings measured in the same run.
- CUDA graphs are the best case: each mini-batch's own structure was captured before, and only replayed.

The exit code is 1 if something is wrong or failed.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from tqdm import tqdm

from edbatch.experiments.peers.tasks import MODELS
from scripts import data_folder
from scripts.gpu import parts
from scripts.gpu.figures import figures
from scripts.gpu.points import Point, asked_for, points
from scripts.gpu.suite import run_tests
from scripts.gpu.tables import show
from scripts.gpu.worker import Elsewhere, Failed, Here, Runner

LIMIT = 90  # seconds that a part may take
TO_COMPILE = 60  # seconds that have to be left for a point with torch.compile, which may take as many more
FOR_CORRECTNESS = 0.4  # of the time, at most
GRACE = 30  # seconds after which a part that runs when time is over is ended


def arguments(given: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1, ... or cpu (default: cuda)")
    parser.add_argument("--minutes", type=float, default=9, help="time for everything (default: 9)")
    parser.add_argument("--json", type=Path, default=Path("gpu.json"),
                        help="file for everything that was found out (default: gpu.json)")  # fmt: skip
    parser.add_argument("--show", type=Path, help="print the tables of such a file, and nothing else")
    parser.add_argument("--quick", action="store_true", help="small sizes and few points")
    parser.add_argument("--models", nargs="+", default=list(MODELS), help=f"some of {', '.join(MODELS)} (default: all)")
    parser.add_argument("--rounds", type=int, default=None, help="mini-batches that a median is of (default: 9)")
    parser.add_argument("--tests", type=float, default=None, help="seconds for tests; 0: none (default: 90; quick: 0)")
    options = parser.parse_args(given)
    options.rounds = options.rounds or (2 if options.quick else 9)
    if options.tests is None:
        options.tests = 0 if options.quick else 90
    return options


class Check:
    """A run of the whole check.

    Args:
        options: of the command line.
        start: when the clock began to run.

    Attributes:
        results: everything that was found out.
    """

    def __init__(self, options: argparse.Namespace, start: float) -> None:
        folder = data_folder()
        kind = Here if options.device == "cpu" else Elsewhere
        self.options = options
        self.results: dict[str, Any] = {
            "data": "made-up" if folder is None else "real", "machine": {"device": options.device}, "correctness": [],
            "ceilings": {}, "asked for": [], "points": [], "failed": [], "not run": [],
        }  # fmt: skip
        self._start, self._deadline = start, start + 60 * options.minutes
        self._runner: Runner = kind(self._deadline + GRACE, parts.tasks_for, options.device, folder)

    def run(self) -> None:
        """All of it; the results are what there is of them, if it is ended before."""
        options, results = self.options, self.results
        todo = points(options.models, options.device, options.quick)
        first = [point for point in todo if asked_for(point)]
        self._compared = todo[0].batch, todo[0].hidden
        try:
            results["machine"] |= self._part("machine", parts.machine, options.device) or {}
            self._correctness()
            results["ceilings"] = self._part("ceilings", parts.ceilings, options.device, options.quick) or {}
            self._points(first)
            if options.tests and (left := self._deadline - perf_counter()) > 0:
                self._save()
                results["tests"] = run_tests(options.device, min(options.tests, left))
            self._points([point for point in todo if point not in first])
        finally:
            self._runner.renew()
            self._save()

    def _correctness(self) -> None:
        """Of all models; one that fails has its error for a result."""
        sizes = [(16, 4)] if self.options.quick else [(64, 16), (37, 5)]  # 37: rows that are no multiple of 16 bytes
        until = self._start + FOR_CORRECTNESS * (self._deadline - self._start)
        device = self.options.device
        todo = [(name, *at) for at in sizes for name in self.options.models]
        for name, hidden, size in tqdm(todo, "correctness", disable=None):
            what = f"{name}, correctness at hidden {hidden}"
            if perf_counter() > until:
                self.results["not run"].append(what)
                continue
            rows = self._part(what, parts.correctness, name, device, hidden, size, seconds=until - perf_counter())
            self.results["correctness"] += rows or []

    def _points(self, todo: list[Point]) -> None:
        """Rows of all points that the time suffices for."""
        options, results = self.options, self.results
        progress = tqdm(todo, "points", disable=None)
        for point in progress:
            if perf_counter() + (TO_COMPILE if point.compiled else 0) > self._deadline:
                results["not run"].append(str(point))
                continue
            progress.set_postfix_str(str(point))
            given = point, options.device, results["ceilings"], options.rounds
            seconds = LIMIT + (TO_COMPILE if point.compiled else 0)
            rows = self._part(str(point), parts.measured, *given, seconds=seconds) or []
            results["points"] += rows
            if any("error" in row for row in rows):
                self._runner.renew()  # whoever failed may have left anything behind
            results["asked for"] = figures(results["points"], *self._compared)

    def _part(self, name: str, part: Any, *given: Any, seconds: float = LIMIT) -> Any:
        """What a part returns; if it fails, None, and the results have the reason."""
        self._save()
        try:
            return self._runner.run(seconds, part, *given)
        except Failed as error:
            self.results["failed"].append({"part": name, "error": str(error)})
            return None

    def _save(self) -> None:
        """Replace the file in one step: whatever ends the run, what was found out is there."""
        path = self.options.json
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}")
        beside.write_text(json.dumps(self.results, indent=2) + "\n")
        beside.replace(path)


def right(results: dict[str, Any]) -> bool:
    """Whether nothing is wrong, and nothing failed."""
    found = [*results["correctness"], results.get("tests", {"right": True})]
    failed = results["failed"] or any("error" in row for row in results["points"])
    return not failed and all(row["right"] for row in found)


def main(given: list[str] | None = None) -> int:
    """Run everything; the exit code."""
    start = perf_counter()
    options = arguments(given)
    if options.show:
        show(json.loads(options.show.read_text()))
        return 0
    if unknown := set(options.models) - set(MODELS):
        print(f"--models: {', '.join(sorted(unknown))}; expected some of {', '.join(MODELS)}", file=sys.stderr)
        return 1
    if options.device != "cpu" and not torch.cuda.is_available():
        print(f"--device {options.device}: PyTorch finds no GPU; --device cpu runs without one", file=sys.stderr)
        return 1
    check = Check(options, start)
    try:
        check.run()
    finally:
        show(check.results)
    return int(not right(check.results))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # with tables of what there is
    sys.exit(main())
