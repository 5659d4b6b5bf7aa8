"""`edbatch schedule`: policies side by side on recorded graphs."""

from __future__ import annotations

import argparse
from statistics import median
from time import perf_counter
from typing import Any

from edbatch.base.lazy import LazyModule
from edbatch.cli.arguments import JSON, Options, option
from edbatch.cli.output import print_json, print_table
from edbatch.policy import Policy, TypedGraph, get_policy, lower_bound, read_graph

tqdm = LazyModule("tqdm")

DEFAULT = ("depth", "agenda", "critical-path")
REPEATS = 5
COLUMNS = ("graph", "nodes", "edges", "types", "lower_bound", "policy", "batches")

HELP = "compare policies on recorded graphs"
DESCRIPTION = f"""\
Schedule recorded graphs with several policies: the number of batches, and the time to decide on them (median of
{REPEATS} runs after one that is not timed).
"""
OPTIONS: Options = {
    "graphs": option("recorded graph (see eb.Graph.save)", "GRAPH", nargs="+"),
    "--policy": option(f"names and files (default: {' '.join(DEFAULT)})", "POLICY", nargs="+", action="extend"),
    **JSON,
}


def run(arguments: argparse.Namespace) -> None:
    """Schedule every graph with every policy."""
    policies = {spec: get_policy(spec) for spec in arguments.policy or DEFAULT}
    graphs = {path: read_graph(path) for path in arguments.graphs}
    bar = tqdm.tqdm(graphs.items(), "scheduling", delay=1, leave=False, disable=None)
    rows = [{"graph": path} | row for path, graph in bar for row in _measured(graph, policies)]
    if arguments.json:
        print_json(rows)
        return
    unseen = any(row["fallbacks"] for row in rows)
    lines: list[list[Any]] = []
    for at, row in enumerate(rows):
        lines += [[]] * (at > 0 and at % len(policies) == 0)
        lines.append([*map(row.get, COLUMNS), f"{1e3 * row['seconds']:.2f}", *[row["fallbacks"]] * unseen])
    print_table([*(name.replace("_", " ") for name in COLUMNS), "ms", *["unseen"] * unseen], lines)
    if unseen:
        print("unseen: decisions in states that were not met in training, made by the rule critical-path")


def _measured(graph: TypedGraph, policies: dict[str, Policy]) -> list[dict[str, Any]]:
    """Per policy its batches, decisions in unseen states and median seconds; they take turns, as the machine varies."""
    counts = {"nodes": len(graph), "edges": len(graph.operands), "types": len(graph.names)}
    counts["lower_bound"] = sum(map(lower_bound, graph.runs()))
    seconds: dict[str, list[float]] = {spec: [] for spec in policies}
    found: dict[str, dict[str, Any]] = {}
    for repeat in range(REPEATS + 1):
        for spec, policy in policies.items():
            # A new graph, as every mini-batch is: what a graph caches is not ready.
            fresh = [TypedGraph(run.types, run.indptr, run.operands, run.names) for run in graph.runs()]
            before = getattr(policy, "fallbacks", 0)
            start = perf_counter()
            batches = sum(len(policy.schedule(run)) for run in fresh)
            if repeat:
                seconds[spec].append(perf_counter() - start)
            found[spec] = {"batches": batches, "fallbacks": getattr(policy, "fallbacks", 0) - before}
    return [{**counts, "policy": spec, "seconds": median(seconds[spec]), **of} for spec, of in found.items()]
