"""Replay: what a call takes whose sample was seen before, and which share of an epoch of training is recording.

    EDBATCH_DATA=... python -m scripts.bench.replay [--json] [--rounds 15] [--hidden 64] [--trees 2048]

Processor time of the thread. A call: the least over all rounds, from the call until the nodes are columns of the graph;
nothing runs. An epoch: a TreeLSTM with a loss at every node, mini-batches of 64, recording, forward, backward and
update; medians over mini-batches. Without EDBATCH_DATA the trees are made up.
"""

from __future__ import annotations

import argparse
import gc
import math
import statistics
from collections.abc import Callable
from random import Random
from time import thread_time
from typing import Any

import edbatch as eb
from edbatch.models.workloads import WORKLOADS
from scripts.bench.arrays import take_over
from scripts.bench.mini_batches import samples, source
from scripts.bench.report import Tables, command

A_CALL, A_NODE = 1.0, 0.005  # microseconds, asked
SHARE = 5.0  # percent of an epoch, asked
NODES = (40, 400)
CALLS = 200
BATCH = 64
EPOCHS = 4


class Trees:
    """A small model over nested tuples of words."""

    def __init__(self) -> None:
        model = eb.ParameterCollection(seed=0)
        self.W = model.add_parameters((8, 16), name="W")
        self.table = model.add_lookup_parameters((50, 8), name="table")

    @eb.cell
    def leaf(self, word: int) -> Any:
        """Of a word."""
        return eb.lookup(self.table, word)

    @eb.cell
    def compose(self, left: Any, right: Any) -> Any:
        """Of two children."""
        return eb.tanh(self.W @ eb.concatenate([left, right]))

    def encode(self, tree: Any) -> Any:
        """Of a tree: two children, or a word."""
        if isinstance(tree, int):
            return self.leaf(tree)
        left, right = tree
        return self.compose(self.encode(left), self.encode(right))

    def plain(self, tree: Any) -> Any:
        """As many nodes as the tree, and one more."""
        return eb.sum(self.encode(tree))

    replayed = eb.replay(plain)


def tree_of(leaves: int, random: Random, kind: Callable[[Any], Any]) -> Any:
    """A tree of so many leaves; `kind` of container."""
    if leaves == 1:
        return random.randrange(50)
    left = random.randrange(1, leaves)
    return kind([tree_of(left, random, kind), tree_of(leaves - left, random, kind)])


def timed(call: Callable[[Any], Any], given: list[Any]) -> float:
    """Microseconds of a call in one graph, with what its nodes take until they are columns."""
    with eb.Graph(policy="sufficient") as graph:
        call(given[0])
        start = thread_time()
        for sample in given[1:]:
            call(sample)
        take_over(graph)
        return 1e6 * (thread_time() - start) / (len(given) - 1)


def first_of(call: Callable[[Any], Any], given: list[Any]) -> float:
    """Microseconds of the first call of a sample, the median: what the very first has traced is there then."""
    times = []
    with eb.Graph(policy="sufficient"):
        for sample in given:
            start = thread_time()
            call(sample)
            times.append(1e6 * (thread_time() - start))
    return statistics.median(times)


def call_of(nodes: int, rounds: int) -> dict[str, Any]:
    """Samples of so many nodes."""
    trees, random = Trees(), Random(0)
    tuples = [tree_of(nodes // 2, random, tuple) for _ in range(CALLS)]
    lists = [tree_of(nodes // 2, random, list) for _ in range(CALLS)]
    first = first_of(trees.replayed, tuples)
    first_of(trees.replayed, lists)
    calls = {"without": (trees.plain, tuples), "a call": (trees.replayed, tuples), "of lists": (trees.replayed, lists)}
    least = dict.fromkeys(calls, math.inf)
    for name, (call, given) in calls.items():
        gc.collect()
        for _ in range(rounds):
            least[name] = min(least[name], timed(call, given))
    return {
        "nodes": nodes,
        "without, us": least["without"],
        "first call, us": first,
        "a call, us": least["a call"],
        "asked, us": A_CALL + A_NODE * nodes,
        "a call with lists, us": least["of lists"],
    }


def epochs(hidden: int, limit: int, replays: bool, mixes: bool) -> list[dict[str, Any]]:
    """Per epoch, a mini-batch's recording and all of it."""
    workload = WORKLOADS["tree-lstm"]
    read = samples("tree-lstm", limit)
    numbered, sizes, labels = workload.number(read)
    at = {label: number for number, label in enumerate(labels)}
    given = [
        (tuple(words), tuple(children), tuple(at[label] for label in tree.labels))
        for (words, children), tree in zip(numbered, read, strict=True)
    ]
    model = eb.ParameterCollection(seed=0)
    network, optimizer, random = workload.network(model, *sizes, hidden), eb.Adam(model, lr=1e-4), Random(0)

    def loss(network: Any, sample: Any) -> Any:
        return network.loss(*sample)

    of_sample = eb.replay(loss) if replays else loss
    rows = []
    for epoch in range(1, EPOCHS + 1):
        if mixes:
            random.shuffle(given)
        recording, whole = [], []
        for first in range(0, len(given) - BATCH + 1, BATCH):
            start = thread_time()
            with eb.Graph(policy="sufficient"):
                total = eb.sum([of_sample(network, sample) for sample in given[first : first + BATCH]])
            recorded = thread_time()
            total.backward()
            optimizer.update()
            recording.append(1e3 * (recorded - start))
            whole.append(1e3 * (thread_time() - start))
        rows.append(
            {
                "samples": "replayed" if replays else "recorded",
                "mini-batches": "mixed anew" if mixes else "the same",
                "epoch": epoch,
                "recording, ms": statistics.median(recording),
                "step, ms": statistics.median(whole),
                "recording, %": 100 * sum(recording) / sum(whole),
                "asked, %": SHARE if replays and epoch > 1 else "",
            }
        )
    return rows


def tables(given: argparse.Namespace) -> Tables:
    """Everything."""
    found: Tables = {"Recording: replayed calls": [call_of(nodes, given.rounds) for nodes in NODES]}
    for hidden in given.hidden:
        ways = ((False, True), (True, True), (True, False))
        rows = [row for replays, mixes in ways for row in epochs(hidden, given.trees, replays, mixes)]
        found[f"Recording: epochs of {source()}, hidden {hidden}, batch {BATCH}"] = rows
    return found


main = command(__doc__, tables, rounds=15, hidden=(64,), trees={"type": int, "default": 2048, "help": "default: 2048"})

if __name__ == "__main__":
    main()
