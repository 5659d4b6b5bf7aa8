"""ED-Batch's table 3: seconds and episodes that learning a policy from one mini-batch takes, and what it reaches.

No episode is needed where a rule reaches the bound: the policy follows it. The paper has no figure for its
encoder-decoder.
"""

from __future__ import annotations

import argparse
from statistics import median
from typing import Any

from tqdm import tqdm

from edbatch.policy import learn
from scripts import data_folder
from scripts.bench.mini_batches import NINE, split
from scripts.bench.report import Chart, Tables, command, source

THEIRS = {
    "tree-lstm": (0.154, 50),
    "tree-gru": (0.141, 50),
    "mv-rnn": (0.254, 50),
    "tree-lstm-2type": (2.217, 1000),
    "tagger": (1.629, 50),
    "tagger-characters": (6.268, 50),
    "lattice-lstm": (21.733, 1000),
    "lattice-gru": (4.911, 1000),
}


def row_of(name: str, size: int, rounds: int) -> dict[str, Any]:
    """One workload."""
    graphs = split(name, 8, size, data_folder())[0].graphs(range(1))
    trained = [learn(graphs, progress=False).training for _ in range(1 + rounds)][1:]
    training: Any = trained[0]
    seconds, episodes = THEIRS.get(name, ("", ""))
    return {
        "workload": name,
        "seconds": median(of.seconds for of in trained),
        "episodes": training.episodes,
        "batches": sum(training.batches),
        "bound": sum(training.bounds),
        "the paper's seconds": seconds,
        "the paper's episodes": episodes,
    }


def tables(given: argparse.Namespace) -> Tables:
    """Everything."""
    rows = [row_of(name, given.batch[0], given.rounds) for name in tqdm(given.workload, disable=None)]
    return {f"Learning from a mini-batch of {given.batch[0]}, {source()}": rows}


chart = Chart("workload", ("seconds", "the paper's seconds"))
main = command(__doc__, tables, rounds=5, chart=chart, batch=(64,), workload=NINE)
