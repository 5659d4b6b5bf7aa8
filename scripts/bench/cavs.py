"""Cavs's table 1: seconds of an epoch of training a TreeLSTM, by batch size (Xu et al., USENIX ATC 2018).

Theirs are computation alone, of the paper's printed numbers those of TreeLSTM (an NVIDIA Titan X, size 512); its Cavs
needs no construction, Fold's takes 1.1 to 48.8 s more. Ours are all there is. Its TreeLSTM sums over children, ours has
a gate for each.
"""

from __future__ import annotations

import argparse

from tqdm import tqdm

from scripts.bench.contest import contest
from scripts.bench.report import Chart, Tables, command, source

EPOCH = 8544  # trees
THEIRS = {1: (76, 550, 62), 16: (9.8, 69, 12), 32: (6.2, 43, 9.9), 64: (4.1, 29, 7.4), 128: (2.9, 20.5, 5.9),
          256: (2.3, 15.8, 5.4)}  # fmt: skip


def tables(given: argparse.Namespace) -> Tables:
    """Everything."""
    rows = []
    for batch in tqdm(given.batch, disable=None):
        ms = contest("tree-lstm", given.hidden[0], batch, given.rounds, training=True)
        rows.append({"batch": batch} | {side: EPOCH / batch * of / 1e3 for side, of in ms.items()})
    theirs = [dict(zip(("batch", "Cavs", "Fold", "DyNet"), (batch, *of), strict=True)) for batch, of in THEIRS.items()]
    return {f"Seconds of an epoch, size {given.hidden[0]}, {source()}": rows, "The paper's": theirs}


SIDES = ("edbatch", "pytorch", "Cavs", "Fold", "DyNet")
main = command(__doc__, tables, rounds=5, chart=Chart("batch", SIDES), hidden=(512,), batch=tuple(THEIRS))
