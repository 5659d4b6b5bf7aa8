"""Training a TreeLSTM by Adam on the Stanford Sentiment Treebank: EdBatch, and PyTorch per sample and by level.

All train on the same mini-batches with a loss at every node. Of EdBatch, a step is all there is: recording the graph in
Python, scheduling, planning, forward, backward, update; once more with samples that are replayed (`eb.replay`).
"""

from __future__ import annotations

import argparse
from itertools import product

from tqdm import tqdm

from scripts.bench.contest import contest
from scripts.bench.report import Tables, command, source


def tables(given: argparse.Namespace) -> Tables:
    """Everything."""
    rows = []
    for hidden, batch in tqdm(list(product(given.hidden, given.batch)), disable=None):
        ms = contest("tree-lstm", hidden, batch, given.rounds, training=True, adam=True)
        for side, of in ms.items():
            row = {"hidden": hidden, "batch": batch, "trained by": side, "CPU ms per step": of}
            row |= {"EdBatch is faster, times": of / ms["edbatch"], "replayed, times": of / ms["edbatch replayed"]}
            rows.append(row)
    return {f"Training a TreeLSTM, {source()}": rows}


main = command(__doc__, tables, rounds=5, hidden=(64, 256), batch=(25, 256))
