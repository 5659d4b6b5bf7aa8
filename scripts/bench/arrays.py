"""Arrays of expressions: what recording a call of n entries takes, and a node, beside a loop of single calls.

    python -m scripts.bench.arrays [--json] [--rounds 15]

The least processor time of the thread over all rounds, from the call until the nodes are columns of the graph; nothing
runs. Asked are at most 3 us a call and, of arrays of 1,000 and more, 15 ns a node.
"""

from __future__ import annotations

import argparse
import gc
import math
from collections.abc import Callable
from time import thread_time
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.graph.columns import Pieces
from scripts.bench.report import Tables, command

A_CALL, A_NODE = 3.0, 0.015  # microseconds, asked

SIZES = (8, 1000, 10_000)


class Cells:
    """Parameters, and cells of expressions, of integers, and of both."""

    def __init__(self) -> None:
        model = eb.ParameterCollection(seed=0)
        self.W = model.add_parameters((8, 8), name="W")
        self.table = model.add_lookup_parameters((50, 8), name="table")

    @eb.cell
    def compose(self, h: Any, c: Any, h2: Any, c2: Any) -> Any:
        """Of four expressions, two."""
        gate = eb.sigmoid(self.W @ h + h2)
        return gate * c, eb.tanh(gate * c2)

    @eb.cell
    def leaf(self, word: int) -> Any:
        """Of an integer."""
        return eb.tanh(self.W @ eb.lookup(self.table, word))

    @eb.cell
    def loss(self, h: Any, label: int) -> Any:
        """Of both."""
        return eb.cross_entropy(self.W @ h, label)


#: x, y, s, k: an array and an integer array, or one of each; s: one expression.
CALLS: dict[str, Callable[[Cells, Any, Any, Any, Any], Any]] = {
    "tanh(x)": lambda cells, x, y, s, k: eb.tanh(x),
    "x + y": lambda cells, x, y, s, k: x + y,
    "x * 0.5": lambda cells, x, y, s, k: x * 0.5,
    "x + one": lambda cells, x, y, s, k: x + s,
    "W @ x": lambda cells, x, y, s, k: cells.W @ x,
    "x[:, :4] + y[:, 4:]": lambda cells, x, y, s, k: part(x, slice(4)) + part(y, slice(4, None)),
    "concatenate([x, y])": lambda cells, x, y, s, k: eb.concatenate([x, y]),
    "lookup(table, k)": lambda cells, x, y, s, k: eb.lookup(cells.table, k),
    "pick(x, k)": lambda cells, x, y, s, k: eb.pick(x, k),
    "cell(h, c, h, c)": lambda cells, x, y, s, k: cells.compose(x, y, y, x),
    "cell(k)": lambda cells, x, y, s, k: cells.leaf(k),
    "cell(x, k)": lambda cells, x, y, s, k: cells.loss(x, k),
}


def part(x: Any, key: slice) -> Any:
    """Of an entry."""
    return x[:, key] if isinstance(x, eb.ExpressionArray) else x[key]


def take_over(graph: eb.Graph) -> None:
    """Make columns of what was recorded, as a run would."""
    taken = graph.take()
    if isinstance(taken, Pieces):
        graph.joined(taken, 0)


def timed(cells: Cells, call: Callable[..., Any], n: int) -> float:
    """Microseconds of a call with arrays of n entries, of many in one graph; with n = 0, of a single one."""
    times = max(10, 20_000 // max(n, 1))
    numbers: Any = np.arange(n) % 8 if n else 3
    least = math.inf
    gc.collect()
    for _ in range(5):  # the first ones find caches and memory as the collection left them
        with eb.Graph(policy="sufficient") as graph:
            x, y = eb.lookup(cells.table, numbers), eb.lookup(cells.table, numbers)
            given = x, y, eb.ones(8), numbers
            call(cells, *given)
            start = thread_time()
            for _ in range(times):
                found = call(cells, *given)
            take_over(graph)
            least = min(least, thread_time() - start)
            del found
    return 1e6 * least / times


def tables(given: argparse.Namespace) -> Tables:
    """Everything."""
    cells = Cells()
    best: dict[tuple[str, int], float] = {}
    for _ in range(given.rounds):
        for name, call in CALLS.items():
            for n in (0, *SIZES):
                best[name, n] = min(best.get((name, n), math.inf), timed(cells, call, n))
    few, many, most = SIZES
    rows = [
        {
            "call": name,
            "a single one, us": best[name, 0],
            f"{few} entries, us": best[name, few],
            f"{many:,}, us": best[name, many],
            f"{most:,}, ns a node": 1e3 * best[name, most] / most,
        }
        for name in CALLS
    ]
    asked = {"call": "asked", **{f"{few} entries, us": A_CALL + few * A_NODE, f"{many:,}, us": A_CALL + many * A_NODE}}
    return {"Recording: arrays of expressions": [*rows, {**asked, f"{most:,}, ns a node": 1e3 * A_NODE}]}


main = command(__doc__, tables, rounds=15)

if __name__ == "__main__":
    main()
