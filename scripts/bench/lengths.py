"""What a length costs that no graph of the process has had, over one that some had.

    python -m scripts.bench.lengths [--json] [--rounds 60] [--hidden 64]

Each of a model's lengths comes twice, in random order: the difference is what is found out about its types, forward
alone, and forward and backward. 24 lengths come before those that are measured, as in the first mini-batches of a run.
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
from collections.abc import Callable
from time import thread_time
from typing import Any

import numpy as np

import edbatch as eb
from scripts.bench.report import Tables, command

SHORTEST, BEFORE, WARM_UP = 20, 24, 60
ASKED = 0.3  # ms more than again, for attention


class Models:
    """What is computed of a sequence of vectors of `hidden` numbers."""

    def __init__(self, hidden: int) -> None:
        self._random = np.random.default_rng(0)
        model = eb.ParameterCollection(seed=0)
        self.hidden, self.W, self.s = hidden, model.add_parameters((hidden, hidden)), model.add_parameters(hidden)
        self.first, self.second = (model.add_parameters((hidden, hidden, 3)) for _ in range(2))

    def _array(self, *shape: int) -> np.ndarray:
        return self._random.normal(size=shape).astype(np.float32)

    def _vectors(self, n: int) -> list[eb.Expression]:
        return [eb.tanh(eb.input(self._array(self.hidden))) for _ in range(n)]

    def attention_over_a_matrix(self, n: int) -> eb.Expression:
        """Weights of the rows of a matrix, their mean by these, and the largest of each column."""
        h = eb.tanh(eb.input(self._array(n, self.hidden)) @ self.W)
        return eb.sum(eb.softmax(h @ self.s) @ h) + eb.sum(eb.max(h, axis=0))

    def attention_over_a_list(self, n: int) -> eb.Expression:
        """The op for lists."""
        keys = self._vectors(n)
        return eb.sum(eb.attention(eb.parameter(self.s), keys, keys))

    def sum_of_a_list(self, n: int) -> eb.Expression:
        """Of vectors."""
        return eb.sum(eb.sum(self._vectors(n)))

    def stack(self, n: int) -> eb.Expression:
        """Of vectors, times a matrix."""
        return eb.sum(eb.stack(self._vectors(n)) @ self.W)

    def concatenate(self, n: int) -> eb.Expression:
        """Of vectors."""
        return eb.sum(eb.square(eb.concatenate(self._vectors(n))))

    def convolutions(self, n: int) -> eb.Expression:
        """Two layers over a sequence, and the largest of each channel."""
        x = eb.input(self._array(self.hidden, n))
        x = eb.relu(eb.conv1d(x, self.first, padding="same"))
        return eb.sum(eb.max(eb.conv1d(x, self.second), axis=1))


def milliseconds(make: Callable[[int], eb.Expression], n: int, backward: bool) -> float:
    """Of this thread, from the first node to the value."""
    begin = thread_time()
    with eb.Graph(policy="sufficient"):
        loss = make(n)
        if backward:
            loss.backward()
        loss.value()
    return 1e3 * (thread_time() - begin)


def measured(make: Callable[[int], eb.Expression], rounds: int, backward: bool) -> dict[str, Any]:
    """Medians over lengths, each new, then again."""
    longest = SHORTEST + 2 * (BEFORE + rounds) + backward
    lengths = list(range(SHORTEST + backward, longest, 2))  # forward and backward have lengths of their own
    random.Random(0).shuffle(lengths)
    for _ in range(WARM_UP):
        milliseconds(make, 11, backward)
    for n in lengths[:BEFORE]:
        milliseconds(make, n, backward)
    gc.collect()
    gc.disable()
    first, again = zip(
        *((milliseconds(make, n, backward), milliseconds(make, n, backward)) for n in lengths[BEFORE:]), strict=True
    )
    gc.enable()
    more = statistics.median(a - b for a, b in zip(first, again, strict=True))
    return {
        "first ms": statistics.median(first),
        "again ms": statistics.median(again),
        "more ms": more,
        "per entry us": 1e3 * more / statistics.median(lengths),
    }


def tables(options: argparse.Namespace) -> Tables:
    """Everything."""
    rows = []
    for hidden in options.hidden:
        models = Models(hidden)
        for name in (
            "attention_over_a_matrix", "attention_over_a_list", "sum_of_a_list", "stack", "concatenate", "convolutions"
        ):  # fmt: skip
            for backward in (False, True):
                found = measured(getattr(models, name), options.rounds, backward)
                passes = "forward and backward" if backward else "forward"
                asked = ASKED if name.startswith("attention") else ""
                rows.append(
                    {"model": name.replace("_", " "), "hidden": hidden, "passes": passes, **found, "asked": asked}
                )
    return {"Lengths that are new, CPU time": rows}


main = command(__doc__, tables, rounds=60, hidden=(64,))

if __name__ == "__main__":
    main()
