"""Host time of small things: values read as they are recorded, small training steps, trees one by one.

    EDBATCH_DATA=... python -m scripts.bench.host [--json] [--rounds 9]

Microseconds that the thread computes, at hidden 64: medians of many repetitions, at its best in all rounds. What is
recorded before a clock runs does not count, but for the tree: that is its construction, its value, and its end; once as
a new one, and once as one whose plan is remembered, as from an epoch before.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from time import thread_time
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.experiments.mini_batches import MiniBatches
from edbatch.runtime.remembered import afresh
from scripts.bench.mini_batches import samples, source
from scripts.bench.report import Tables, command

HIDDEN = 64
REPETITIONS = 100
TREES = 100
READS = 100  # before the one backward run of a graph


class Model:
    """A layer, and all that is timed with it."""

    def __init__(self) -> None:
        self.model = eb.ParameterCollection(seed=0)
        self.W = self.model.add_parameters((HIDDEN, HIDDEN))
        self.b = self.model.add_parameters(HIDDEN)
        self.trainer = eb.SGD(self.model, lr=0.01)
        self.x = np.random.default_rng(0).normal(size=HIDDEN).astype(np.float32)

    @eb.cell
    def cell(self, h: eb.Expression) -> eb.Expression:
        """tanh(W h + b)."""
        return eb.tanh(self.W @ h + self.b)

    def ten_ops(self, h: eb.Expression) -> eb.Expression:
        """Ten nodes, each of the one before."""
        for _ in range(5):
            h = eb.tanh(self.W @ h)
        return h

    def reads(self, grow: Callable[[eb.Expression], eb.Expression]) -> list[float]:
        """Of the value of what a graph has grown by."""
        found = []
        with eb.Graph():
            h = eb.input(self.x)
            h.value()
            for _ in range(REPETITIONS):
                h = grow(h)
                found.append(_timed(h.value))
        return found

    def reads_again(self) -> list[float]:
        """Of a value that is there."""
        with eb.Graph():
            h = self.cell(eb.input(self.x))
            h.value()
            return [_timed(h.value) for _ in range(REPETITIONS)]

    def small_step(self) -> None:
        """Five nodes, their value, their gradients, an update."""
        with eb.Graph():
            h = eb.tanh(self.W @ eb.input(self.x) + self.b)
            loss = eb.sum(h * h)
            loss.value()
            loss.backward()
        self.trainer.update()

    def backward_after_reads(self) -> float:
        """Of a backward run through what was read value by value."""
        with eb.Graph():
            h = eb.input(self.x)
            for _ in range(READS):
                h = self.cell(h)
                h.value()
            loss = eb.sum(h)
            loss.value()
            found = _timed(loss.backward)
        self.model.zero_grad()
        return found


def _timed(function: Callable[[], Any]) -> float:
    start = thread_time()
    function()
    return thread_time() - start


def _median(found: list[float]) -> float:
    """In microseconds, of the second half."""
    return 1e6 * statistics.median(found[len(found) // 2 :])


def figures(trees: MiniBatches) -> dict[str, float]:
    """Microseconds of everything, once; `trees`: of one each."""
    model = Model()
    steps = [_timed(model.small_step) for _ in range(REPETITIONS)]
    backward = [model.backward_after_reads() for _ in range(REPETITIONS // 10)]
    again = [_timed(lambda number=number: trees.run(number)) for number in range(len(trees.batches))]
    with afresh():
        new = [_timed(lambda number=number: trees.run(number)) for number in range(len(trees.batches))]
    return {
        "a value after ten new nodes": _median(model.reads(model.ten_ops)),
        "a value after one call of a cell": _median(model.reads(model.cell)),
        "a value that is there": _median(model.reads_again()),
        "five nodes: value, backward, update": _median(steps),
        f"backward after {READS} values": _median(backward),
        "a tree, all in all": 1e6 * statistics.mean(new),
        "a tree that was there before, all in all": 1e6 * statistics.mean(again),
    }


def tables(options: argparse.Namespace) -> Tables:
    """Everything."""
    trees = MiniBatches("tree-lstm", samples("tree-lstm", TREES), HIDDEN, 1)
    rounds = [figures(trees) for _ in range(1 + options.rounds)][1:]
    rows = [{"what": name, "CPU us": min(found[name] for found in rounds)} for name in rounds[0]]
    return {f"Host time of small things, hidden {HIDDEN}, {source()}": rows}


main = command(__doc__, tables, rounds=5, remembers=True)

if __name__ == "__main__":
    main()
