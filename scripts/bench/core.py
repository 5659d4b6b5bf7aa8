"""The core's figures: construction, scheduling, planning, learning, batches, and TreeLSTM against its products.

    EDBATCH_DATA=... python -m scripts.bench.core [--json] [--rounds 9]

Needs the recorded graphs and the trees of EDBATCH_DATA; without them it says so and stops.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import edbatch as eb
from edbatch.data.trees import Tree, read_trees
from edbatch.data.vocabulary import Vocabulary
from edbatch.models.tree_lstm import TreeLSTM
from scripts import data_folder
from scripts.bench import report as bench
from scripts.bench.policy import measure as policy_tables
from scripts.bench.products import products

STAGES = ["construction", "lowering", "scheduling", "planning", "execution"]


class Workload:
    """TreeLSTM over the mini-batches of a treebank, a softmax at every node."""

    def __init__(self, trees: list[Tree], hidden: int, batch_size: int) -> None:
        vocabulary = Vocabulary(word for tree in trees for word in tree.words if word is not None)
        model = eb.ParameterCollection(seed=0)
        self.model = model
        self.lstm = TreeLSTM(model, words=len(vocabulary), labels=5, dim=hidden)
        words = [[None if word is None else vocabulary[word] for word in tree.words] for tree in trees]
        samples = list(zip(words, [tree.children for tree in trees], strict=True))
        self.batches = [samples[i : i + batch_size] for i in range(0, len(samples), batch_size)]

    def build(self, number: int, policy: eb.Policy | None) -> eb.Graph:
        """The graph of one mini-batch, op by op: the core is measured without cells."""
        with eb.options(cells=False), eb.Graph(policy=policy) as graph:
            for words, children in self.batches[number]:
                for h in self.lstm.hidden(words, children):
                    self.lstm.probabilities(h)
        return graph

    def run(self, number: int, policy: eb.Policy | None) -> eb.Graph:
        """Build and run one mini-batch."""
        graph = self.build(number, policy)
        graph.run()
        return graph


def construction_and_planning(trees: list[Tree], rounds: int) -> tuple[list[dict], list[dict]]:
    """Nanoseconds per node and edge of every host stage, on op-level TreeLSTM, batch 64."""
    workload = Workload(trees, hidden=64, batch_size=64)
    policies = {"fsm": eb.learn([workload.build(0, None).typed_graph()]), "sufficient": eb.get_policy("sufficient")}
    seconds: dict[str, dict[str, list[float]]] = {name: {stage: [] for stage in STAGES} for name in policies}
    build: list[float] = []
    for number in range(rounds + 1):
        for name, policy in policies.items():
            start = perf_counter()
            graph = workload.build(1 + number % 3, policy)
            built = (perf_counter() - start) / graph.n
            graph.run()
            report = graph.report()
            size = report.nodes + report.edges
            if number:
                build.append(built * 1e9)
                for stage in STAGES:
                    seconds[name][stage].append(report.seconds[stage] * 1e9 / size)
    median = {name: {stage: statistics.median(values) for stage, values in by.items()} for name, by in seconds.items()}
    table = [{"policy": name, **{f"{stage} ns": value for stage, value in by.items()}} for name, by in median.items()]
    fsm = median["fsm"]
    figures = [
        bench.figure("construction of op-level TreeLSTM", statistics.median(build), 450, "ns per node"),
        bench.figure("planning / scheduling by FSM", fsm["planning"] / fsm["scheduling"], 3, "ratio"),
    ]
    return figures, table


def against_unbatched(trees: list[Tree], hidden: int, rounds: int) -> dict[str, Any]:
    """One mini-batch of 64: one node at a time against the learned policy, construction to values."""
    workload = Workload(trees[:64], hidden=hidden, batch_size=64)
    fsm = eb.learn([workload.build(0, None).typed_graph()])
    none = eb.get_policy("none")
    seconds = bench.interleaved({"none": lambda: workload.run(0, none), "fsm": lambda: workload.run(0, fsm)}, rounds)
    return {
        "hidden": hidden,
        "unbatched trees/s": 64 / seconds["none"],
        "learned trees/s": 64 / seconds["fsm"],
        "times": seconds["none"] / seconds["fsm"],
    }


def against_products(trees: list[Tree], hidden: int, rounds: int) -> dict[str, Any]:
    """Total time of mini-batches of 64 over the time of their matrix products alone."""
    workload = Workload(trees, hidden=hidden, batch_size=64)
    fsm = eb.learn([workload.build(0, None).typed_graph()])
    ratios, totals, stages = [], [], []
    for number in range(4):
        alone = products(workload.build(number, fsm), fsm)
        seconds = bench.interleaved({"total": lambda n=number: workload.run(n, fsm), "alone": alone}, rounds)
        ratios.append(seconds["total"] / seconds["alone"])
        totals.append(seconds["total"])
        stages.append(workload.run(number, fsm).report().seconds)
    return {
        "hidden": hidden,
        "ms": 1e3 * statistics.median(totals),
        "total / products": statistics.median(ratios),
        **{f"{stage} ms": 1e3 * statistics.median(by[stage] for by in stages) for stage in STAGES},
    }


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
    return [
        bench.figure("import edbatch", statistics.median(output(IMPORT) for _ in range(rounds)), 0.5, "s"),
        bench.figure("functions compiled by a second run", output(COMPILED), 0),
    ]


def main() -> None:
    options = bench.arguments(__doc__.splitlines()[0])
    folder = data_folder()
    if folder is None:
        sys.exit("EDBATCH_DATA names no folder with data; nothing was measured")
    trees = [tree.binarized() for tree in read_trees(Path(folder) / "sst" / "train.txt")[:512]]
    figures, stages = construction_and_planning(trees, options.rounds)
    by_hidden = [against_products(trees, hidden, options.rounds) for hidden in (64, 128, 256, 512)]
    unbatched = [against_unbatched(trees, hidden, options.rounds) for hidden in (64, 128, 256)]
    figures.append(bench.figure("TreeLSTM hidden 64 batch 64 / unbatched", unbatched[0]["times"], 10, "times"))
    at_256 = next(row for row in by_hidden if row["hidden"] == 256)
    figures.append(
        bench.figure("TreeLSTM hidden 256: total / products alone", at_256["total / products"], 2.2, "ratio")
    )
    figures += fresh_processes(options.rounds)
    policy = policy_tables(folder, options.rounds)
    bench.finish(
        {
            "Core": figures,
            "Host time per scheduled node and edge, TreeLSTM batch 64": stages,
            "TreeLSTM on SST, batch 64, construction to values": by_hidden,
            "TreeLSTM on SST, batch 64, against one node at a time": unbatched,
            **policy,
        },
        options.json,
    )


if __name__ == "__main__":
    main()
