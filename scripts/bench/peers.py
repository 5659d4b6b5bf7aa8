"""ED-Batch's figure 6 beside PyTorch by hand: samples a second of its nine workloads, forward and in training.

Of the thread's processor time. Of figure 6 the paper prints no numbers; its text says 1.11 to 2.97 times DyNet with
Cavs's cells on a CPU, means over sizes.
"""

from __future__ import annotations

import argparse
from itertools import product
from statistics import geometric_mean
from typing import Any

from tqdm import tqdm

from scripts.bench.contest import contest, times
from scripts.bench.mini_batches import NINE
from scripts.bench.report import Chart, Rows, Tables, command, source

LARGEST = {("mv-rnn", 256): 64}  # batch size: more takes gigabytes of each side


def mean(rows: Rows) -> dict[str, Any]:
    """Geometric means over workloads and batch sizes, and at how many points PyTorch is faster."""
    recorded, replayed = ([row[name] for row in rows] for name in ("times", "times, replayed"))
    slower = [sum(one < 1 for one in side) for side in (recorded, replayed)]
    found = {"recorded": geometric_mean(recorded), "replayed": geometric_mean(replayed), "points": len(rows)}
    return found | {"a peer by hand faster at": "{}, replayed {}".format(*slower)}


def tables(given: argparse.Namespace) -> Tables:
    """Everything."""
    found: Tables = {}
    means = []
    for mode, hidden in product(given.mode, given.hidden):
        rows = []
        for name, batch in tqdm(list(product(given.workload, given.batch)), f"{mode} {hidden}", disable=None):
            if batch <= LARGEST.get((name, hidden), batch):
                ms = contest(name, hidden, batch, given.rounds, mode == "training", given.adam)
                rates = {side: 1e3 * batch / of for side, of in ms.items()}
                rows.append({"workload": name, "batch": batch} | rates | times(ms))
        found[f"Samples a second, {mode}, hidden {hidden}, {source()}"] = rows
        if "times" in rows[0]:
            means.append({"": f"{mode}, hidden {hidden}"} | mean(rows))
    return found | {"Times PyTorch by hand, geometric means": means}


main = command(
    __doc__,
    tables,
    rounds=5,
    chart=Chart("batch", ("edbatch", "pytorch"), panel="workload"),
    mode=("forward", "training"),
    hidden=(64, 256),
    workload=NINE,
    batch=(8, 64, 256),
    adam={"action": "store_true", "help": "train by Adam, not by plain gradient descent"},
)
