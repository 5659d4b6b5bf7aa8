"""PQ trees are linear; layouts of cells: time, entries moved, and how far from the least possible.

    python -m scripts.bench.pq_tree [--json] [--rounds 9]

Times of PQ trees are without Python's garbage collector, whose passes over all live objects grow with the tree.
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

from edbatch.experiments.measure import interleaved
from edbatch.memory.layout import BatchedOp, Variable, plan_layout
from edbatch.memory.layout.pq_tree import PQTree
from scripts.bench.report import Tables, command, figure
from tests.memory.layout.cells import CELLS, least_moved, random_case

SIZES = (100, 1_000, 10_000, 100_000)


def short_intervals(n: int, rng: random.Random) -> list[list[int]]:
    """Half as many subsets as elements, of 2 to 14 elements each."""
    return intervals(n, rng, [rng.randint(2, 14) for _ in range(n // 2)])


def all_lengths(n: int, rng: random.Random) -> list[list[int]]:
    """Subsets of 2, 4, 8 ... n / 2 elements; as many of each as make n elements together."""
    sizes = [size for size in (2**power for power in range(1, n.bit_length() - 1)) for _ in range(n // size)]
    rng.shuffle(sizes)
    return intervals(n, rng, sizes[:: n.bit_length() - 2])


def pairs(n: int, rng: random.Random) -> list[list[int]]:
    """All neighbours, in random order: Q nodes merge until there is one."""
    rows = [[i, i + 1] for i in range(n - 1)]
    rng.shuffle(rows)
    return rows


def deep(n: int, rng: random.Random) -> list[list[int]]:
    """Blocks of 32 elements: 31 nodes inside each other, which the outermost and the innermost leaf then collapse."""
    blocks = [list(range(start, min(start + 32, n))) for start in range(0, n, 32)]
    nested = [block[:size] for block in blocks for size in range(len(block), 1, -1)]
    rng.shuffle(nested)
    return nested + [[block[0], block[-1]] for block in blocks]


def intervals(n: int, rng: random.Random, sizes: list[int]) -> list[list[int]]:
    """Shuffled intervals of a hidden order."""
    hidden = rng.sample(range(n), n)
    starts = [rng.randint(0, n - size) for size in sizes]
    return [rng.sample(hidden[start : start + size], size) for start, size in zip(starts, sizes, strict=True)]


def reduction_seconds(n: int, rows: list[list[int]], rounds: int) -> float:
    """Median time to build a tree of n elements and reduce it by every row."""

    def reduce_all() -> None:
        tree = PQTree(range(n))
        assert all(tree.reduce(row) for row in rows)

    gc.disable()
    try:
        return interleaved({"": reduce_all}, rounds, warm_ups=0)[""].seconds
    finally:
        gc.enable()


def linearity(rounds: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Microseconds per element of input, and the exponent of time over input."""
    figures, table = [], []
    for family in (short_intervals, all_lengths, pairs, deep):
        row: dict[str, Any] = {"subsets": family.__name__.replace("_", " ")}
        inputs, times = [], []
        for n in SIZES:
            rows = family(n, random.Random(n))
            inputs.append(n + len(rows) + sum(map(len, rows)))
            times.append(reduction_seconds(n, rows, rounds if n < SIZES[-1] else max(1, rounds // 3)))
            row[f"{n:,} elements"] = times[-1] / inputs[-1] * 1e6
        exponent = float(np.polyfit(np.log(inputs), np.log(times), 1)[0])
        table.append(row)
        figures.append(figure(f"time over input, {row['subsets']}", exponent, 1.1, "exponent"))
    return figures, table


def conflicting_case(seed: int, noise: float) -> tuple[list[Variable], list[BatchedOp]]:
    """60 variables and 25 batches that fit a hidden order, but for a share of random operands."""
    rng = random.Random(seed)
    n = 60
    hidden = rng.sample(range(n), n)
    ops = []
    for number in range(25):
        k = rng.randint(2, 4)
        run = rng.sample(range(k), k)
        starts = [rng.randint(0, n - k) for _ in range(3)]
        result, *operands = (
            tuple(rng.sample(range(n), k)) if rng.random() < noise else tuple(hidden[start + i] for i in run)
            for start in starts
        )
        ops.append(BatchedOp(f"op{number}", result, tuple(operands)))
    return [Variable(f"v{i}", rng.choice((1, 64, 4096))) for i in range(n)], ops


def milliseconds(function: Callable[[], Any], rounds: int) -> float:
    """The median of a function alone."""
    return 1e3 * interleaved({"": function}, rounds)[""].seconds


def layouts(rounds: int) -> list[dict[str, Any]]:
    """Cells, and the largest cases asked for, with more and more conflicts."""
    table = []
    for name, build in CELLS.items():
        cell = build()
        layout = plan_layout(cell.variables, cell.ops)
        table.append(
            {
                "cell": name,
                "variables": len(cell.variables),
                "batches": len(cell.ops),
                "ms": milliseconds(lambda cell=cell: plan_layout(cell.variables, cell.ops), rounds),
                "gathers": sum(verdict.moved > 0 for verdict in layout.verdicts),
                "proven least": "yes" if layout.cheapest else "no",
            }
        )
    for noise in (0.0, 0.02, 0.05, 0.2):
        cases = [conflicting_case(seed, noise) for seed in range(11)]
        planned = [plan_layout(*case) for case in cases]
        table.append(
            {
                "cell": f"11 random ones, {noise:.0%} of operands at random (medians)",
                "variables": 60,
                "batches": 25,
                "ms": statistics.median(milliseconds(lambda case=case: plan_layout(*case), 3) for case in cases),
                "gathers": statistics.median(sum(v.moved > 0 for v in layout.verdicts) for layout in planned),
                "proven least": f"{sum(layout.cheapest for layout in planned)} of 11",
            }
        )
    return table


def against_the_least(cases: int) -> list[dict[str, Any]]:
    """Random operands that mostly conflict, on so few variables that every order can be tried."""
    table = []
    for n, most_ops in ((4, 3), (5, 4), (6, 5)):
        excess = []
        for seed in range(cases):
            variables, ops = random_case(random.Random(seed), n, 1 + seed % most_ops, repeats=0.2)
            moved, least = plan_layout(variables, ops).moved, least_moved(variables, ops)
            excess.append(moved / least if least else 1.0 + moved)
        table.append(
            {
                "variables": n,
                "batches": f"1-{most_ops}",
                "cases": cases,
                "more than the least": sum(ratio > 1 for ratio in excess),
                "worst, times the least": max(excess),
            }
        )
    return table


def tables(options: argparse.Namespace) -> Tables:
    """Everything."""
    figures, table = linearity(options.rounds)
    planned = layouts(options.rounds)
    least = against_the_least(200)
    slowest = max(row["ms"] for row in planned[: len(CELLS) + 1])
    missed = sum(row["more than the least"] for row in least) / sum(row["cases"] for row in least)
    figures += [
        figure("cells, and 60 variables in 25 batches without conflicts, slowest", slowest, 30, "ms"),
        figure("60 variables in 25 batches, 5% of operands at random, median", planned[-2]["ms"], 30, "ms"),
        figure("gathers in LSTM, GRU, TreeLSTM, TreeGRU, MV-RNN", sum(row["gathers"] for row in planned[:5]), 0),
        figure("random small cases that miss the least", missed * 100, 0, "%"),
    ]
    return {
        "PQ tree and layout": figures,
        "PQ tree, microseconds per element of input (elements, subsets and their sizes)": table,
        "Layouts": planned,
        "Entries moved, against every order": least,
    }


main = command(__doc__, tables)

if __name__ == "__main__":
    main()
