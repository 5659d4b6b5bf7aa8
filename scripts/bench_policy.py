"""Batch counts and costs of the batching policies on recorded graphs.

    EDBATCH_DATA=... python scripts/bench_policy.py [--json] [--repeat 21]

Reads $EDBATCH_DATA/graphs/*.txt. Times are medians on one core and include finding each node's users, as for a
graph that was just built; compiled code is loaded beforehand. Learned policies are trained on G0 and G1 of
mini-batches of 64 and tested on all graphs; `test` marks those they were not trained on.
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections import defaultdict
from pathlib import Path

from tabulate import tabulate

from edbatch.policy import Policy, TypedGraph, get_policy, learn, lower_bound, read_graph

RULES = ("depth", "agenda", "agenda-remaining", "sufficient-direct", "sufficient", "greedy", "beam:50")
TIMED = ("agenda", "sufficient", "greedy")
ENCODINGS = ("sort", "critical")


def median_seconds(policy: Policy, graph: TypedGraph, repeat: int) -> float:
    times = []
    for _ in range(repeat + 1):  # the first loads compiled code
        fresh = TypedGraph(graph.types, graph.indptr, graph.operands, graph.names)
        start = time.perf_counter()
        policy.schedule(fresh)
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def measure(folder: Path, repeat: int) -> tuple[list[dict], list[dict]]:
    """One row per graph, and one per learned policy."""
    graphs = {path.stem: read_graph(path) for path in sorted(folder.glob("*.txt"))}
    families = defaultdict(list)
    for name in graphs:
        families[name.split("-")[0]].append(name)
    rows, learned = [], []
    for family, names in families.items():
        train = [name for name in names if name.endswith(("B64-G0", "B64-G1"))]
        policies = {}
        for encoding in ENCODINGS:
            learn([graphs[train[0]]], encoding=encoding, episodes=50, progress=False)  # loads compiled code
            policy = policies[f"fsm-{encoding}"] = learn(
                [graphs[name] for name in train], encoding=encoding, progress=False
            )
            record = policy.training
            learned.append(
                {
                    "family": family,
                    "encoding": encoding,
                    "policy": policy.name,
                    "episodes": record.episodes,
                    "seconds": record.seconds,
                    "batches": sum(record.batches),
                    "bound": sum(record.bounds),
                    "best heuristic": sum(record.heuristic_batches),
                }
            )
        for name in names:
            graph = graphs[name]
            bound, size = lower_bound(graph), len(graph) + len(graph.operands)
            row = {"graph": name + (" test" if name not in train else ""), "size": size, "bound": bound}
            policies.update((rule, get_policy(rule)) for rule in RULES)
            for rule, policy in policies.items():
                row[rule] = round(len(policy.schedule(graph)) / bound, 3)
            for rule in (*TIMED, *(f"fsm-{encoding}" for encoding in ENCODINGS)):
                row[f"{rule} ns"] = round(median_seconds(policies[rule], graph, repeat) / size * 1e9, 1)
            rows.append(row)
    return rows, learned


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--repeat", type=int, default=21, help="runs per median")
    options = parser.parse_args()
    folder = Path(os.environ.get("EDBATCH_DATA", "")) / "graphs"
    if not folder.is_dir():
        sys.exit("set EDBATCH_DATA to the folder that holds graphs/*.txt")
    rows, learned = measure(folder, options.repeat)
    if options.json:
        print(json.dumps({"graphs": rows, "learned": learned}, indent=1))
        return
    print("Batches over the lower bound, and nanoseconds per node and edge\n")
    print(tabulate(rows, headers="keys"))
    print("\nLearning from two graphs\n")
    print(tabulate(learned, headers="keys"))


if __name__ == "__main__":
    main()
