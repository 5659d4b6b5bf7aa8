"""The core's figures: construction, scheduling, planning, and TreeLSTM against its products.

    EDBATCH_DATA=... python -m scripts.bench.core [--json] [--rounds 9]

Op by op: the core is measured without cells. Needs the trees of EDBATCH_DATA; without them it says so and stops. What
policies reach and cost is measured by `edbatch bench batches` and `edbatch bench learning`.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from time import perf_counter
from typing import Any

import edbatch as eb
from edbatch.experiments.measure import STAGES, interleaved
from edbatch.experiments.mini_batches import MiniBatches
from scripts.bench.mini_batches import over_products, samples
from scripts.bench.report import Tables, command, figure, needed_folder

OP_BY_OP = {"cells": False}


def host_stages(trees: list[Any], rounds: int) -> tuple[float, list[dict[str, Any]]]:
    """Nanoseconds of recording a node; and of every host stage per node and edge; batch 64."""
    workload = MiniBatches("tree-lstm", trees, 64, 64)
    policies = {"fsm": workload.learned(), "sufficient": eb.get_policy("sufficient")}

    def measured(number: int, policy: eb.Policy) -> dict[str, float]:
        start = perf_counter()
        graph = workload.build(number, policy)
        built = (perf_counter() - start) / graph.n
        graph.run()
        report = graph.report()
        size = report.nodes + report.edges
        return {"built": 1e9 * built, **{f"{stage} ns": 1e9 * report.seconds[stage] / size for stage in STAGES}}

    functions = {name: lambda number, policy=policy: measured(number, policy) for name, policy in policies.items()}
    runs = interleaved(functions, rounds, given=lambda number: 1 + number % 3)
    built = statistics.median(value for of in runs.values() for value in of.figures.pop("built"))
    return built, [{"policy": name, **of.medians()} for name, of in runs.items()]


def against_unbatched(trees: list[Any], hidden: int, rounds: int) -> dict[str, Any]:
    """One mini-batch of 64: one node at a time against the learned policy, construction to values."""
    workload = MiniBatches("tree-lstm", trees[:64], hidden, 64)
    policies = {"unbatched": eb.get_policy("none"), "learned": workload.learned()}
    runs = interleaved(
        {name: lambda policy=policy: workload.run(0, policy) for name, policy in policies.items()}, rounds
    )
    speeds = {f"{name} trees/s": 64 / of.seconds for name, of in runs.items()}
    return {"hidden": hidden, **speeds, "times": runs["unbatched"].seconds / runs["learned"].seconds}


IMPORT = "import time; start = time.perf_counter(); import edbatch; print(time.perf_counter() - start)"
COMPILED = """
import edbatch as eb, numba
from numba.core import event
compiled = []
class Listener(event.Listener):
    def on_start(self, event): compiled.append(str(event.data['dispatcher']))
    def on_end(self, event): pass
event.register('numba:compile', Listener())
model = eb.ParameterCollection()
W = model.add_parameters((4, 4))
with eb.Graph() as graph:
    xs = [eb.input([1.0] * 4)]
    for i in range(9): xs.append(eb.tanh(W @ xs[i // 2]) + xs[-1][::-1])
    eb.sum(xs).value()
print(len(compiled))
"""


def fresh_processes(rounds: int) -> list[dict[str, Any]]:
    """Import time, and functions compiled by a second process."""

    def output(code: str) -> float:
        return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)

    output(COMPILED)
    imported = interleaved({"": lambda: {"s": output(IMPORT)}}, rounds, warm_ups=0)[""].medians()["s"]
    return [
        figure("import edbatch", imported, 0.5, "s"),
        figure("functions compiled by a second run", output(COMPILED), 0),
    ]


def tables(options: argparse.Namespace) -> Tables:
    """Everything."""
    needed_folder()
    rounds = options.rounds
    trees = samples("tree-lstm", 512)
    with eb.options(**OP_BY_OP):
        built, stages = host_stages(trees, rounds)
        by_hidden = [
            {"hidden": hidden, **over_products(MiniBatches("tree-lstm", trees, hidden, 64), {"": OP_BY_OP}, rounds)[""]}
            for hidden in (64, 128, 256, 512)
        ]
        unbatched = [against_unbatched(trees, hidden, rounds) for hidden in (64, 128, 256)]
    fsm, at_256 = stages[0], by_hidden[2]
    figures = [
        figure("construction of op-level TreeLSTM", built, 450, "ns per node"),
        figure("planning / scheduling by FSM", fsm["planning ns"] / fsm["scheduling ns"], 3, "ratio"),
        figure("TreeLSTM hidden 64 batch 64 / unbatched", unbatched[0]["times"], 10, "times"),
        figure("TreeLSTM hidden 256: total / products alone", at_256["total / products"], 2.2, "ratio"),
        *fresh_processes(rounds),
    ]
    return {
        "Core": figures,
        "Host time per scheduled node and edge, TreeLSTM batch 64": stages,
        "TreeLSTM on SST, batch 64, construction to values": by_hidden,
        "TreeLSTM on SST, batch 64, against one node at a time": unbatched,
    }


main = command(__doc__, tables)

if __name__ == "__main__":
    main()
