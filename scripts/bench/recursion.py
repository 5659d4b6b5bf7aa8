"""Recursion's table 2: trees a second of a TreeLSTM, forward and in training (Jeong et al., EuroSys 2018).

Theirs: size 150, trees of the Large Movie Review data set, two Xeons of 18 cores each (folding: an NVIDIA Titan X).
"""

from __future__ import annotations

import argparse
from itertools import product

from tqdm import tqdm

from scripts.bench.contest import contest
from scripts.bench.report import Chart, Tables, command, source

THEIRS = {
    "forward": {1: (19.2, 81.4, 16.5), 10: (49.3, 217.9, 52.2), 25: (72.1, 269.9, 61.6)},
    "training": {1: (2.5, 4.8, 9.0), 10: (4.0, 4.2, 37.5), 25: (5.5, 3.6, 54.7)},
}
SIDES = ("iterative", "recursive", "folding")


def tables(given: argparse.Namespace) -> Tables:
    """Everything."""
    rows = []
    for mode, batch in tqdm(list(product(THEIRS, given.batch)), disable=None):
        ms = contest("tree-lstm", given.hidden[0], batch, given.rounds, mode == "training")
        rows.append({"mode": mode, "batch": batch} | {side: 1e3 * batch / of for side, of in ms.items()})
    theirs = [
        {"mode": mode, "batch": batch} | dict(zip(SIDES, of, strict=True))
        for mode, table in THEIRS.items()
        for batch, of in table.items()
    ]
    return {f"Trees a second, size {given.hidden[0]}, {source()}": rows, "The paper's": theirs}


chart = Chart("batch", ("edbatch", "pytorch", *SIDES), panel="mode")
main = command(__doc__, tables, rounds=5, chart=chart, hidden=(150,), batch=(1, 10, 25))
