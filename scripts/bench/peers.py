"""ED-Batch's figure 6 beside PyTorch by hand: samples a second of its nine workloads, forward and in training.

Of the thread's processor time. Of figure 6 the paper prints no numbers; its text says 1.11 to 2.97 times DyNet with
Cavs's cells on a CPU, means over sizes.
"""

from __future__ import annotations

import argparse
from itertools import product
from statistics import geometric_mean

from tqdm import tqdm

from scripts.bench.contest import contest, times
from scripts.bench.mini_batches import NINE
from scripts.bench.report import Chart, Rows, Tables, command, source

LARGEST = {("mv-rnn", 256): 64}  # batch size: more takes gigabytes of each side
OURS = ("edbatch, times", "edbatch replayed, times")


def means(rows: Rows) -> Rows:
    """Geometric means over workloads and batch sizes, and at how many points a peer by hand is faster."""
    found = []
    for mode, hidden in dict.fromkeys((row["mode"], row["hidden"]) for row in rows):
        of = [row for row in rows if (row["mode"], row["hidden"]) == (mode, hidden) and OURS[0] in row]
        if of:
            by_side = [[row[side] for row in of] for side in OURS]
            recorded, replayed = map(geometric_mean, by_side)
            slower = ", replayed ".join(str(sum(one < 1 for one in side)) for side in by_side)
            row = {"": f"{mode}, hidden {hidden}", "recorded": recorded, "replayed": replayed, "points": len(of)}
            found.append(row | {"a peer by hand faster at": slower})
    return found


def tables(given: argparse.Namespace) -> Tables:
    """Everything."""
    rows = []
    points = list(product(given.mode, given.hidden, given.workload, given.batch))
    for mode, hidden, name, batch in tqdm(points, disable=None):
        if batch <= LARGEST.get((name, hidden), batch):
            ms = contest(name, hidden, batch, given.rounds, mode == "training")
            point = {"mode": mode, "hidden": hidden, "workload": name, "batch": batch}
            rows.append(point | {side: 1e3 * batch / of for side, of in ms.items()} | times(ms))
    return {f"Samples a second, {source()}": rows, "Times PyTorch by hand, geometric means": means(rows)}


main = command(
    __doc__,
    tables,
    rounds=5,
    chart=Chart("batch", ("edbatch", "pytorch"), panel="workload"),
    mode=("forward", "training"),
    hidden=(64, 256),
    workload=NINE,
    batch=(8, 64, 256),
)
