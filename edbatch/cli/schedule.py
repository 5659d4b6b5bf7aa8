"""`edbatch schedule`: policies side by side on recorded graphs."""

from __future__ import annotations

import argparse
from statistics import median
from time import perf_counter
from typing import Any

from edbatch.base.later import Later
from edbatch.cli.arguments import Commands, add_command, add_json
from edbatch.cli.output import print_json, print_table
from edbatch.policy import Policy, TypedGraph, get_policy, lower_bound, read_graph

tqdm = Later("tqdm")

REPEATS = 5


def add_parser(commands: Commands) -> None:
    """Add the command."""
    description = (
        "Schedule recorded graphs with several policies: the number of batches, and the time\n"
        f"to decide on them (median of {REPEATS} runs after one that is not timed)."
    )
    parser = add_command(commands, "schedule", run, "compare policies on recorded graphs", description)
    parser.add_argument("graphs", nargs="+", metavar="GRAPH", help="recorded graph (see eb.Graph.save)")
    parser.add_argument(
        "--policy",
        nargs="+",
        action="extend",
        metavar="POLICY",
        help="heuristics by name and policy files (default: depth agenda critical-path)",
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> None:
    """Schedule every graph with every policy.

    Raises:
        EdBatchError: a graph or a policy cannot be read.
    """
    specs = arguments.policy or ["depth", "agenda", "critical-path"]
    policies = {spec: get_policy(spec) for spec in specs}
    graphs = {path: read_graph(path) for path in arguments.graphs}
    rows: list[dict[str, Any]] = []
    for path, graph in tqdm.tqdm(graphs.items(), "scheduling", delay=1, leave=False, disable=None):
        about = {
            "graph": path,
            "nodes": len(graph),
            "edges": len(graph.operands),
            "types": len(graph.names),
            "lower_bound": sum(map(lower_bound, graph.runs())),
        }
        rows += [about | row for row in _measure(graph, policies)]
    if arguments.json:
        print_json(rows)
        return
    _print(list(graphs), rows)


def _measure(graph: TypedGraph, policies: dict[str, Policy]) -> list[dict[str, Any]]:
    """Per policy its batches, decisions in unseen states and median seconds.

    The policies take turns, so that a disturbance hits all alike.
    """
    seconds: dict[str, list[float]] = {spec: [] for spec in policies}
    batches: dict[str, int] = {}
    fallbacks: dict[str, int] = {}
    for repeat in range(REPEATS + 1):
        for spec, policy in policies.items():
            # A new graph, as every mini-batch is: what a graph caches is not ready.
            fresh = [TypedGraph(run.types, run.indptr, run.operands, run.names) for run in graph.runs()]
            before = getattr(policy, "fallbacks", 0)
            start = perf_counter()
            batches[spec] = sum(len(policy.schedule(run)) for run in fresh)
            if repeat:
                seconds[spec].append(perf_counter() - start)
            fallbacks[spec] = getattr(policy, "fallbacks", 0) - before
    return [
        {"policy": spec, "batches": batches[spec], "seconds": median(seconds[spec]), "fallbacks": fallbacks[spec]}
        for spec in policies
    ]


def _print(paths: list[str], rows: list[dict[str, Any]]) -> None:
    """One table; what the rows of a graph have in common is said once."""
    unseen = any(row["fallbacks"] for row in rows)
    lines: list[list[Any]] = []
    for path in paths:
        of_graph = [row for row in rows if row["graph"] == path]
        for row in of_graph:
            common = [row[key] for key in ("graph", "nodes", "edges", "types", "lower_bound")]
            shown = common if row is of_graph[0] else [None] * len(common)
            line = [*shown, row["policy"], row["batches"], f"{1e3 * row['seconds']:.2f}"]
            lines.append(line + [row["fallbacks"]] * unseen)
        lines.append([])
    headers = ["graph", "nodes", "edges", "types", "lower bound", "policy", "batches", "ms"]
    print_table(headers + ["unseen"] * unseen, lines[:-1])
    if unseen:
        print("unseen: decisions in states that were not met in training, made by the path ratio")
