"""Cells: what one node a call, blocks that stay in the cache and fused kernels are worth on TreeLSTM.

    EDBATCH_DATA=... python scripts/bench_cells.py [--json] [--rounds 9]

Total is construction to values; products are the same matrix products alone, same shapes, same process.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from typing import Any

import bench_common as bench  # first: it sets up the environment before NumPy loads
import bench_core
import numpy as np

import edbatch as eb
from edbatch.data.trees import Tree, read_trees
from edbatch.graph.cell import CellOp
from edbatch.graph.node_type import TYPES

VARIANTS = {"op by op": {"cells": False}, "cells": {"fuse": False}, "cells, fused": {}}


def build(workload: bench_core.Workload, number: int, policy: eb.Policy) -> eb.Graph:
    """One mini-batch, with the options in force."""
    with eb.Graph(policy=policy) as graph:
        for words, children in workload.batches[number]:
            for h in workload.lstm.hidden(words, children):
                workload.lstm.probabilities(h)
    return graph


def products(graph: eb.Graph, policy: eb.Policy) -> Callable[[], None]:
    """A function that computes the matrix products of a graph of cells, batch for batch, and nothing else."""
    typed = graph.typed_graph()
    schedule = policy.schedule(typed)
    by_name = {type.name: type for type in TYPES}
    random = np.random.default_rng(0)
    calls = []
    for kind, size in zip(schedule.types.tolist(), np.diff(schedule.offsets).tolist(), strict=True):
        op = by_name[typed.names[kind]].op
        for node in op.body.nodes if isinstance(op, CellOp) else ():
            if node.type.op.name in ("matmul", "affine"):
                rows, columns = node.type.operands[0].shape
                x = random.standard_normal((size, columns), np.float32)
                weights = np.asfortranarray(random.standard_normal((rows, columns), np.float32)).T
                calls.append((x, weights, np.empty((size, rows), np.float32)))

    def run() -> None:
        for x, weights, out in calls:
            np.matmul(x, weights, out=out)

    return run


def ratios(trees: list[Tree], hidden: int, batch_size: int, rounds: int) -> dict[str, Any]:
    """Total over products of every variant, on a few mini-batches."""
    workload = bench_core.Workload(trees[: 4 * batch_size], hidden=hidden, batch_size=batch_size)
    policies = {}
    for name, options in VARIANTS.items():
        with eb.options(**options):
            policies[name] = eb.learn([build(workload, 0, eb.get_policy("sufficient")).typed_graph()], progress=False)
    found: dict[str, list[float]] = {name: [] for name in VARIANTS}
    milliseconds = []
    for number in range(min(4, len(workload.batches))):
        functions: dict[str, Callable[[], Any]] = {}
        for name, options in VARIANTS.items():

            def run(name: str = name, options: dict[str, bool] = options) -> eb.Graph:
                with eb.options(**options):
                    graph = build(workload, number, policies[name])  # noqa: B023 (called in this round)
                    graph.run()
                return graph

            functions[name] = run
        functions["alone"] = products(build(workload, number, policies["cells"]), policies["cells"])
        seconds = bench.interleaved(functions, rounds)
        milliseconds.append(1e3 * seconds["cells, fused"])
        for name in VARIANTS:
            found[name].append(seconds[name] / seconds["alone"])
    return {
        "hidden": hidden,
        "batch": batch_size,
        "ms, fused": statistics.median(milliseconds),
        **{f"{name} / products": statistics.median(values) for name, values in found.items()},
    }


def construction(trees: list[Tree], rounds: int) -> list[dict[str, Any]]:
    """Nanoseconds of recording one call of a cell, in a loop over calls whose arguments are at hand."""
    workload = bench_core.Workload(trees[:8], hidden=64, batch_size=8)
    lstm = workload.lstm
    n = 10_000
    with eb.Graph(policy="sufficient"):
        states = [lstm.leaf(word % 50) for word in range(n)]
        calls = {
            "compose (4 expressions, 2 results)": lambda: [lstm.compose(h, c, h, c) for h, c in states],
            "leaf (1 integer, 2 results)": lambda: [lstm.leaf(3) for _ in states],
            "probabilities (1 expression, 1 result)": lambda: [lstm.probabilities(h) for h, _ in states],
            "the loop alone": lambda: [(h, c) for h, c in states],
        }
        seconds = bench.interleaved(calls, rounds)
    loop = seconds.pop("the loop alone")
    return [bench.figure(name, (value - loop) * 1e9 / n, 250, "ns per call") for name, value in seconds.items()]


def main() -> None:
    options = bench.arguments(__doc__.splitlines()[0])
    folder = bench.data_folder()
    if folder is None:
        sys.exit("EDBATCH_DATA names no folder with data; nothing was measured")
    trees = [tree.binarized() for tree in read_trees(folder / "sst" / "train.txt")[:1024]]
    table = [
        ratios(trees, hidden, batch_size, options.rounds)
        for hidden in (64, 256, 512)
        for batch_size in (1, 32, 64, 256)
    ]
    bench.finish({"Recording a call": construction(trees, options.rounds), "TreeLSTM on SST": table}, options.json)


if __name__ == "__main__":
    main()
