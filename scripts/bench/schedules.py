"""Batches over the lower bound, and what deciding on them costs: rules, learned machines, and the fewest possible.

    EDBATCH_DATA=... python -m scripts.bench.schedules [--json] [--rounds 9] [--size 64] [--graphs 5]

Machines are learned of three mini-batches and judged by others. The graphs of the folder `graphs` of EDBATCH_DATA,
where there is one, are judged as they are; their machines are learned of the others of their kind.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from time import thread_time
from typing import Any, NamedTuple

import edbatch as eb
from edbatch.policy import TypedGraph, lower_bound, read_graph
from scripts import data_folder
from scripts.bench.fewest_batches import Batching, fewest_batches
from scripts.bench.measure import interleaved
from scripts.bench.mini_batches import LEARNED, NINE, MiniBatches, samples_of
from scripts.bench.report import Rows, Tables, command

RULES = ("depth", "agenda", "sufficient", "critical-path")
TIMED = ("agenda", "sufficient", "critical-path", "learned")
OP_BY_OP = {"cells": False}
SMALL = (1, 2, 4, 8)  # samples; graphs of more than 500 nodes are not searched
SMALL_GRAPHS = 6  # of each number
BUDGET = 20_000  # batches tried for each


class Family(NamedTuple):
    """Graphs of one kind, and others to learn from."""

    name: str
    graphs: list[TypedGraph]
    others: list[TypedGraph]


def graphs_of(name: str, size: int, count: int, folder: Path | None, **options: Any) -> list[TypedGraph]:
    """Mini-batches of a workload."""
    batches = MiniBatches(name, samples_of(name, size * count, folder), 8, size)
    with eb.options(**options):
        return batches.graphs(range(len(batches.batches)))


def families(size: int, count: int, folder: Path | None) -> Iterator[Family]:
    """The nine workloads, lattices in twice the size too, trees of two types op by op; recorded graphs."""
    kinds: list[tuple[str, int, dict[str, Any]]] = [(name, size, {}) for name in NINE]
    kinds += [(name, 2 * size, {}) for name in NINE if "lattice" in name]
    kinds += [("tree-lstm-2type", size, OP_BY_OP)]
    for name, of, options in kinds:
        found = graphs_of(name, of, count + LEARNED, folder, **options)
        yield Family(f"{name}{', op by op' * bool(options)}, {of}", found[LEARNED:], found[:LEARNED])
    recorded = sorted(folder.glob("graphs/*.txt")) if folder else []
    for name in sorted({path.stem.rpartition("-")[0] for path in recorded}):
        found = [read_graph(path) for path in recorded if path.stem.rpartition("-")[0] == name]
        for index, graph in enumerate(found):  # each is judged by what the others teach
            yield Family(f"recorded {name} {index}", [graph], found[:index] + found[index + 1 :])


def over_bound(policy: eb.Policy, graphs: Sequence[TypedGraph]) -> float:
    """Batches of all graphs over their bounds."""
    return sum(len(policy.schedule(graph)) for graph in graphs) / sum(map(lower_bound, graphs))


def judged(found: Sequence[Family], rounds: int) -> tuple[Rows, Rows]:
    """For each family, batches over the bound; and the least nanoseconds of this thread per node."""
    ratios, times = [], []
    for family in found:
        policies = {name: eb.get_policy(name) for name in RULES}
        if family.others:
            policies["sort"] = eb.learn(family.others, encoding="sort", progress=False)
            policies["learned"] = eb.learn(family.others, progress=False)
        row: dict[str, Any] = {"graphs": family.name, "nodes": sum(len(graph.types) for graph in family.graphs)}
        row |= {name: over_bound(policy, family.graphs) for name, policy in policies.items()}
        ratios.append(row)
        nodes = row["nodes"]
        functions = {name: partial(_timed, policies[name], family.graphs) for name in TIMED if name in policies}
        runs = interleaved(functions, rounds)
        times.append({"graphs": family.name} | {name: min(of.figures["ns"]) / nodes for name, of in runs.items()})
    return ratios, times


def _timed(policy: eb.Policy, graphs: Sequence[TypedGraph]) -> dict[str, float]:
    begun = thread_time()
    for graph in graphs:
        policy.schedule(graph)
    return {"ns": 1e9 * (thread_time() - begun)}


def proven(folder: Path | None) -> Rows:
    """Small mini-batches: the rules, and the fewest batches that there can be."""
    rows = []
    kinds: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in NINE] + [("tree-lstm-2type", OP_BY_OP)]
    for name, options in kinds:
        for size in SMALL:
            graphs = graphs_of(name, size, SMALL_GRAPHS, folder, **options)
            known = {graph: one.least for graph in graphs if not (one := fewest(graph)).gap}
            bound, batches = sum(map(lower_bound, known)) or math.nan, sum(known.values()) or math.nan
            reached = sum(lower_bound(graph) == least for graph, least in known.items())
            by = {rule: sum(len(eb.get_policy(rule).schedule(one)) for one in known) for rule in RULES[2:]}
            row = {"graphs": f"{name}{', op by op' * bool(options)}", "samples": size}
            row |= {"proven": f"{len(known)} of {len(graphs)}", "bound reached": f"{reached} of {len(known)}"}
            row |= {"fewest / bound": batches / bound}
            rows.append(row | {f"{rule} / fewest": count / batches for rule, count in by.items()})
    return rows


def fewest(graph: TypedGraph) -> Batching:
    """The fewest batches, or those that were found."""
    operands = [graph.operands[begin:end].tolist() for begin, end in pairwise(graph.indptr.tolist())]
    return fewest_batches(graph.types.tolist(), operands, BUDGET)


def tables(given: argparse.Namespace) -> Tables:
    """Everything."""
    folder = data_folder()
    ratios, times = judged(list(families(given.size, given.graphs, folder)), given.rounds)
    return {
        "Batches over the lower bound": ratios,
        "Deciding on them, ns per node": times,
        "Small mini-batches, by branch and bound": proven(folder),
    }


main = command(
    __doc__,
    tables,
    size={"type": int, "default": 64, "help": "samples of a mini-batch (default: 64)"},
    graphs={"type": int, "default": 5, "help": "mini-batches that are judged (default: 5)"},
)

if __name__ == "__main__":
    main()
