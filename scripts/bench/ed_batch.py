"""Three models beside the original ED-Batch, by its own benchmark: forward, from samples to the value of the loss.

ED_BATCH names a checkout of github.com/gulang2019/ED-Batch that was built as its README says (Debian: cmake,
libeigen3-dev, libboost-regex-dev). In `benchmark/test_graph.cc`, read `REPEAT` from the environment, and leave as
`configs` {"rl_sorted-opt", 0, 3, 5} and {"dynet_agenda-opt5", 1, 0, 5}; copy WikiNER to
`benchmark/data/tags/train.txt`; then `make test_graph` there, with Eigen's headers and `-march=native`.

The same mini-batches of the same data on both sides, in turns, by the clock, as that is what ED-Batch measures; values
are not compared, as its parameters are constants. Of ED-Batch the faster counts of two settings with static subgraphs
laid out by the PQ tree: batches chosen by the learned state machine, or by DyNet's agenda. Its benchmark learns the
machine from the first mini-batch before it times anything.
"""

from __future__ import annotations

import argparse
import csv
import os
import statistics
import subprocess
import sys
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tqdm import tqdm

from edbatch.runtime.plan_cache import afresh
from scripts import data_folder
from scripts.bench.contest import Own, Task
from scripts.bench.measure import interleaved
from scripts.bench.report import Tables, command, source

NAMES = {"tree-lstm": "tree_lstm", "tagger": "bilstm_tagger", "lattice-lstm": "lattice_lstm"}  # here, and there
MINI_BATCHES = 20  # of a run, on both sides
SETTINGS = ("rl_sorted-opt", "dynet_agenda-opt5")


def theirs(name: str, hidden: int, size: int, folder: Path) -> dict[str, float]:
    """Milliseconds of a mini-batch by setting, of one run of ED-Batch's benchmark."""
    with TemporaryDirectory() as results:
        asked = [NAMES[name], "CPU", str(size), str(hidden), "0", f"{results}/", "--dynet-mem", "2000"]
        environment = os.environ | {"REPEAT": str(MINI_BATCHES), "LD_LIBRARY_PATH": str(folder / "lib")}
        subprocess.run(
            ["./test_graph", *asked], cwd=folder / "benchmark", env=environment, check=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        with (Path(results) / f"{size}-{hidden}" / "CPU" / f"{NAMES[name]}.csv").open() as file:
            return {
                row["alg"]: float(row["value"]) / MINI_BATCHES
                for row in csv.DictReader(file)
                if row["metric"] == "total" and row["alg"] in SETTINGS
            }


def row_of(name: str, hidden: int, size: int, rounds: int, folder: Path) -> dict[str, Any]:
    """One model at one size."""
    task = Task(name, MINI_BATCHES * size, data_folder())
    own, batches = Own(task, hidden), [task.samples[at : at + size] for at in range(0, len(task.samples), size)]

    def run(replays: bool = False) -> None:
        for batch in batches:
            own.loss(batch, replays).value()

    def recorded() -> None:
        with afresh():
            run()

    sides: dict[str, Any] = {"recorded": recorded, "again": run, "replayed": lambda: run(replays=True)}
    runs = interleaved(sides | {"ED-Batch": lambda: theirs(name, hidden, size, folder)}, rounds, warm_ups=2)
    ms = {side: 1e3 * statistics.median(runs[side].wall) / len(batches) for side in sides}
    best = min(runs["ED-Batch"].medians().values())
    row = {"model": name, "hidden": hidden, "batch": size, "ED-Batch, ms": best, **ms}
    return row | {f"{side}, times as fast": best / of for side, of in ms.items()}


def tables(given: argparse.Namespace) -> Tables:
    """Everything."""
    folder = os.environ.get("ED_BATCH")
    if folder is None:
        sys.exit("ED_BATCH names no checkout of ED-Batch; nothing was measured")
    points = list(product(given.model, given.hidden, given.batch))
    rows = [row_of(*point, given.rounds, Path(folder)) for point in tqdm(points, disable=None)]
    return {f"Beside ED-Batch, forward, {source()}": rows}


models = tuple(NAMES)
main = command(__doc__, tables, rounds=5, remembers=True, hidden=(64, 256), batch=(1, 64), model=models)
