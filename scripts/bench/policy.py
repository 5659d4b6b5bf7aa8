"""Batches and costs of the batching policies on recorded graphs.

    EDBATCH_DATA=... python -m scripts.bench.policy [--json] [--rounds 9]

Reads $EDBATCH_DATA/graphs/*.txt. A learned policy is tested on a graph it was NOT trained on: it is trained on the
other graphs of the same model. Times include finding each node's users, as for a graph that was just built.
"""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

from edbatch.experiments.measure import interleaved
from edbatch.policy import Policy, TypedGraph, get_policy, learn, lower_bound, read_graph
from edbatch.policy.encodings import ENCODINGS as STATES
from edbatch.policy.rollouts import learn_from
from edbatch.policy.state_table import new_table
from edbatch.policy.trainer import Trainer
from scripts.bench.report import Tables, command, figure, needed_folder

RULES = ("depth", "agenda", "sufficient-direct", "sufficient", "greedy", "beam:100")
ENCODINGS = ("sort", "critical")


def fresh(graph: TypedGraph) -> TypedGraph:
    """As a graph that was just built."""
    return TypedGraph(graph.types, graph.indptr, graph.operands, graph.names)


def learning_seconds(graph: TypedGraph, rounds: int) -> float:
    """1,000 episodes of Q-learning itself: no teachers, no early stop."""

    def learn_anew(given: tuple[Trainer, Any]) -> None:
        trainer, table = given
        for number in range(1000):
            table, decisions = trainer.run(table, 0, alpha=0.5, epsilon=0.5 * (1 - number / 1000), greedy=True)
            learn_from(trainer.arenas[0], table, decisions, 0.1, 0.95, 5)

    def given(_: int) -> tuple[Trainer, Any]:
        return Trainer([graph], STATES["sort"], 0), new_table(64, 512)

    return interleaved({"": learn_anew}, max(2, rounds // 3), given, warm_ups=0)[""].seconds


def policies_on(folder: Path, rounds: int) -> Tables:
    """Of recorded graphs: the figures asked for, batches over the bound of each graph, nanoseconds of each graph."""
    graphs = {path.stem: read_graph(path) for path in sorted((folder / "graphs").glob("*.txt"))}
    families: dict[str, list[str]] = defaultdict(list)
    for name in graphs:
        families[name.split("-")[0]].append(name)
    batches, costs = [], []
    for names in families.values():
        for name in names:
            graph = graphs[name]
            others = [graphs[other] for other in names if other != name]
            policies: dict[str, Policy] = {rule: get_policy(rule) for rule in RULES}
            for encoding in ENCODINGS:
                policies[f"fsm {encoding}"] = learn(others, encoding=encoding, progress=False)
            bound, size = lower_bound(graph), len(graph) + len(graph.operands)
            ratios = {rule: len(policy.schedule(graph)) / bound for rule, policy in policies.items()}
            batches.append({"graph": name, "nodes": len(graph), "bound": bound, **ratios})
            # What a policy costs where it knows the states, as when it was learned from such a mini-batch, and where it
            # meets states it does not know and finds path ratios for them.
            timed = {rule: policies[rule] for rule in ("agenda", "sufficient")}
            for encoding in ENCODINGS:
                timed[f"fsm {encoding}"] = learn([*others, graph], encoding=encoding, progress=False)
                timed[f"fsm {encoding}, new graph"] = policies[f"fsm {encoding}"]
            schedules = {rule: policy.schedule for rule, policy in timed.items()}
            runs = interleaved(schedules, rounds, given=lambda _, graph=graph: fresh(graph))
            costs.append(
                {"graph": name, "nodes+edges": size} | {rule: of.seconds * 1e9 / size for rule, of in runs.items()}
            )

    def worst(rule: str, *kinds: str) -> float:
        return max(row[rule] for row in batches if row["graph"].startswith(kinds))

    def mean(rule: str, kind: str) -> float:
        return statistics.geometric_mean(row[rule] for row in batches if row["graph"].startswith(kind))

    def middle(rule: str) -> float:
        return statistics.median(row[rule] for row in costs)

    def slowest(rule: str) -> float:
        return max(row[rule] for row in costs)

    optimal = ("treenn", "mvrnn", "bilstm")
    best_search = [min(row["greedy"], row["beam:100"]) for row in batches if row["graph"].startswith("lattice")]
    figures = [
        figure("FSM sort, median of graphs", middle("fsm sort"), 10, "ns/node+edge"),
        figure("FSM sort, slowest graph", slowest("fsm sort"), 10, "ns/node+edge"),
        figure("FSM sort, unknown states, slowest graph", slowest("fsm sort, new graph"), 10, "ns/node+edge"),
        figure("sufficient, slowest graph", slowest("sufficient"), 60, "ns/node+edge"),
        figure("1,000 episodes, treenn-B64-G0", learning_seconds(graphs["treenn-B64-G0"], rounds), 1, "s"),
        figure("1,000 episodes, lattice-B64-G0", learning_seconds(graphs["lattice-B64-G0"], rounds), 1, "s"),
        figure("sufficient: treenn, mvrnn, bilstm, worst", worst("sufficient", *optimal), 1.0, "x bound"),
        figure("FSM sort, new graphs: treenn, mvrnn", worst("fsm sort", "treenn", "mvrnn"), 1.0, "x bound"),
        figure("FSM sort, new graphs: bilstm", worst("fsm sort", "bilstm"), 1.02, "x bound"),
        figure("best search: seq2seq, worst", worst("beam:100", "seq2seq"), 1.0, "x bound"),
        figure("best search: lattice, mean", statistics.geometric_mean(best_search), 1.10, "x bound"),
        figure("best search: lattice, worst", max(best_search), 1.10, "x bound"),
        figure("FSM sort, new graphs: seq2seq, worst", worst("fsm sort", "seq2seq"), 1.10, "x bound"),
        figure("FSM sort, new graphs: lattice, mean", mean("fsm sort", "lattice"), 1.25, "x bound"),
        figure("FSM sort, new graphs: lattice, worst", worst("fsm sort", "lattice"), 1.25, "x bound"),
        figure("FSM critical, new graphs: lattice, mean", mean("fsm critical", "lattice"), 1.25, "x bound"),
        figure("FSM critical, new graphs: lattice, worst", worst("fsm critical", "lattice"), 1.25, "x bound"),
    ]  # fmt: skip
    return {
        "Policies": figures,
        "Batches over the lower bound, recorded graphs (learned: on graphs not trained on)": batches,
        "Scheduling, ns per node and edge": costs,
    }


def tables(options: argparse.Namespace) -> Tables:
    """Everything."""
    return policies_on(needed_folder(), options.rounds)


main = command(__doc__, tables)

if __name__ == "__main__":
    main()
