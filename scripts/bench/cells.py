"""Cells: what one node a call, blocks that stay in the cache, fused kernels and planned layouts are worth.

    EDBATCH_DATA=... python -m scripts.bench.cells [--json] [--rounds 9]

TreeLSTM: total is construction to values; products are the same matrix products alone, same shapes, same process.

The paper's table 2 (batch of 8 calls, size 64, float32). A memory kernel is every copy that computes nothing: the
gather of one operand of a batch whose variables do not lie side by side in the order of the batch, the scatter of a
result, a concatenation. Its bytes are those of the operand, once: variables of a call times 8 calls, parameters once,
whatever the number of calls. One variable for a whole batch (the x of W_i x, W_f x...) is a broadcast and counts
nothing, for a product of stacked weights reads it once; the paper counts it, and has nothing else left. Gathering a
call's arguments from the graph belongs to the graph and not to the cell. Counted is what three layouts would take:

    planned     the compiler's
    unplanned   `options(layout=False)`: batch by batch, results and parameters side by side as they are traced
    as written  the planned batches, with every variable at its place in the code

and "copies run" is what the compiled program does copy: the parts of concatenations that are nodes of it, and results
that have to be moved to the row that a call returns.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.data.trees import Tree, read_trees
from edbatch.graph.cell_entry import CellOp
from edbatch.graph.compiled import Compiled
from edbatch.graph.node_type import TYPES, NodeType
from edbatch.kernels import fused, machine_code
from edbatch.kernels.numpy_backend import NumPyBackend
from edbatch.memory.layout import RESULT, Layout, lay_out
from edbatch.policy import Schedule, TypedGraph
from edbatch.runtime.type_table import kernel_of
from scripts import data_folder
from scripts.bench import core
from scripts.bench import report as bench
from scripts.bench.paper_cells import CASES, Case
from scripts.bench.products import products

VARIANTS = {"op by op": {"cells": False}, "cells": {"fuse": False}, "cells, fused": {}}


def build(workload: core.Workload, number: int, policy: eb.Policy) -> eb.Graph:
    """One mini-batch, with the options in force."""
    with eb.Graph(policy=policy) as graph:
        for words, children in workload.batches[number]:
            for h in workload.lstm.hidden(words, children):
                workload.lstm.probabilities(h)
    return graph


def ratios(trees: list[Tree], hidden: int, batch_size: int, rounds: int) -> dict[str, Any]:
    """Total over products of every variant, on a few mini-batches."""
    workload = core.Workload(trees[: 4 * batch_size], hidden=hidden, batch_size=batch_size)
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
    workload = core.Workload(trees[:8], hidden=64, batch_size=8)
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


CALLS, SIZE = 8, 64
REPEATED = 200  # calls in one measurement of latency


def trace(case: Case, owner: Any, size: int = SIZE, **options: bool) -> tuple[NodeType, Compiled]:
    """The cell as it is compiled with these options."""
    with eb.options(**options), eb.Graph():
        getattr(owner, case.cell)(*(eb.input(value[0]) for value in case.values(1, size)))
    ((_, compiled),) = getattr(owner, case.cell).compiled(owner)
    return next(type for type in TYPES if isinstance(type.op, CellOp) and type.op.compiled is compiled), compiled


def moved(layout: Layout, compiled: Compiled) -> tuple[int, float]:
    """Memory kernels, and kilobytes, of a batch of calls under a layout."""
    parameters = {row["variable"] for row in compiled.storage if row["is"] == "parameter"}
    kernels, size = 0, 0
    for verdict in layout.verdicts:
        op = layout.ops[verdict.op]
        slot = op.result if verdict.slot == RESULT else op.operands[verdict.slot]
        kernels += verdict.moved > 0
        size += verdict.moved * 4 * (1 if layout.variables[slot[0]].name in parameters else CALLS)
    return kernels, size / 1000


def copies_run(type: NodeType) -> tuple[int, float]:
    """The same of what the program copies."""
    op = type.op
    assert isinstance(op, CellOp)
    placing = [node for node in op.body.nodes if node.type.op.places is not None]
    results = [value.view.out.size for value in op.body.outputs if value.view is not None]
    kernels = sum(len(node.operands) for node in placing) + len(results)
    return kernels, CALLS * 4 * (sum(node.type.out.size for node in placing) + sum(results)) / 1000


def table_2() -> list[dict[str, Any]]:
    """Memory kernels and kilobytes, ours / the paper's."""
    rows = []
    for case in CASES:
        type, compiled = trace(case, case.make(eb.ParameterCollection(), SIZE))
        _, unplanned = trace(case, case.make(eb.ParameterCollection(), SIZE), layout=False)
        layout = compiled.layout
        written = lay_out(layout.variables, layout.ops, range(len(layout.variables)))
        found = {
            "planned": moved(layout, compiled),
            "unplanned": moved(unplanned.layout, unplanned),
            "as written": moved(written, compiled),
            "paper, PQ tree": (case.kernels[1], case.kilobytes[1]),
            "paper, DyNet": (case.kernels[0], case.kilobytes[0]),
            "copies run": copies_run(type),
        }
        rows.append(
            {"cell": case.name} | {name: f"{kernels} ({size:.3g} kB)" for name, (kernels, size) in found.items()}
        )
    return rows


def kernels_compiled() -> dict[str, float]:
    """Per cell, milliseconds of compiling its kernels, where none has been compiled before by any process."""
    found = {}
    kept = os.environ.get("XDG_CACHE_HOME")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        for case in (CASES[-1], *CASES):  # the first also loads what all share
            owner = case.make(eb.ParameterCollection(), SIZE + 1)
            type, _ = trace(case, owner, SIZE + 1)
            out = np.empty((CALLS, *type.out.shape), np.float32)
            fused.address.cache_clear()
            machine_code.address_of.cache_clear()
            shutil.rmtree(Path(folder) / "edbatch", ignore_errors=True)
            start = perf_counter()
            kernel_of(type, NumPyBackend())(out, *case.values(CALLS, SIZE + 1))
            found[case.name] = 1e3 * (perf_counter() - start)
    os.environ.pop("XDG_CACHE_HOME")
    if kept is not None:
        os.environ["XDG_CACHE_HOME"] = kept
    return found


def planning(rounds: int) -> list[dict[str, Any]]:
    """Milliseconds of compiling a cell, the median over fresh models; and of its kernels, which are compiled apart."""
    rows = []
    kernels = kernels_compiled()
    for case in CASES:
        steps: list[dict[str, float]] = []
        for _ in range(rounds):
            _, compiled = trace(case, case.make(eb.ParameterCollection(), SIZE))
            steps.append(compiled.seconds)
        median = {name: 1e3 * statistics.median(step[name] for step in steps) for name in steps[0]}
        rows.append(
            {
                "cell": case.name,
                "batches": compiled.batches,
                "fewest": compiled.least,
                **median,
                "total ms": 1e3 * statistics.median(sum(step.values()) for step in steps),
                "asked": 30,
                "paper": case.milliseconds,
                "kernels, once per machine": kernels[case.name],
            }
        )
    return rows


class Batches:
    """A policy that runs nodes in batches of so many, in the order in which they were recorded."""

    name = "batches"

    def __init__(self, size: int) -> None:
        self.size = size

    def schedule(self, graph: TypedGraph) -> Schedule:
        """See `Policy.schedule`."""
        n = len(graph)
        offsets = np.arange(0, n + 1, self.size)
        return Schedule(np.arange(n, dtype=np.int32), offsets, graph.types[offsets[:-1]])

    def save(self, path: Any) -> None:
        """There is nothing to save."""


def batch_of_calls(case: Case, owner: Any, values: list[np.ndarray]) -> float:
    """Seconds that one batch of calls takes inside the execution of a graph of many."""
    cell = getattr(owner, case.cell)
    with eb.Graph(policy=Batches(CALLS)) as graph:
        given = [[eb.input(row) for row in rows] for rows in values]
        graph.run()
        for _ in range(REPEATED):
            for arguments in zip(*given, strict=True):
                cell(*arguments)
        before = graph.report().seconds["execution"]
        graph.run()
    return (graph.report().seconds["execution"] - before) / REPEATED


def latency(rounds: int) -> list[dict[str, Any]]:
    """Microseconds of a batch of calls: in a graph, and the same cell by hand."""
    rows = []
    for case in CASES:
        owner = case.make(eb.ParameterCollection(), SIZE)
        by_hand = getattr(owner, case.by_hand)()
        values = case.values(CALLS, SIZE)
        batch_of_calls(case, owner, values)
        ours, hands = [], []
        for _ in range(rounds):
            ours.append(batch_of_calls(case, owner, values))
            start = perf_counter()
            for _ in range(REPEATED):
                by_hand(*values)
            hands.append((perf_counter() - start) / REPEATED)
        rows.append(
            {
                "cell": case.name,
                "ours us": 1e6 * statistics.median(ours),
                "by hand us": 1e6 * statistics.median(hands),
                "ratio": statistics.median(ours) / statistics.median(hands),
                "asked": 1.0,
            }
        )
    return rows


def main() -> None:
    options = bench.arguments(__doc__.splitlines()[0])
    results = {
        f"Memory kernels per batch of {CALLS} calls, size {SIZE}": table_2(),
        "Compiling a cell, milliseconds": planning(options.rounds),
        f"Latency of a batch of {CALLS} calls, size {SIZE}": latency(options.rounds),
    }
    folder = data_folder()
    if folder is None:
        print("EDBATCH_DATA names no folder with data: TreeLSTM was not measured", file=sys.stderr)
        bench.finish(results, options.json)
        return
    trees = [tree.binarized() for tree in read_trees(folder / "sst" / "train.txt")[:1024]]
    table = [
        ratios(trees, hidden, batch_size, options.rounds)
        for hidden in (64, 256, 512)
        for batch_size in (1, 32, 64, 256)
    ]
    results |= {"Recording a call": construction(trees, options.rounds), "TreeLSTM on SST": table}
    bench.finish(results, options.json)


if __name__ == "__main__":
    main()
