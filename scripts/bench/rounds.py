"""Rounds of programs over values: what one costs, and the batches that policies take in them.

    python -m scripts.bench.rounds [--json] [--rounds 21]

A round is compared with a loop by hand, which records the same and reads the same by `eb.forward`. Policies are learned
from other samples than those that are run; programs read some samples each, one after the other, and wait for what
they have read of each.
"""

from __future__ import annotations

import argparse
from typing import Any

import edbatch as eb
from edbatch.experiments.measure import interleaved
from edbatch.models.workloads import get_workload
from edbatch.policy import Policy, TypedGraph, get_policy, lower_bound
from scripts.bench.report import Tables, command

WORKLOADS = ("lattice-lstm", "lattice-gru", "tree-lstm", "mv-rnn", "tagger-characters", "encoder-decoder")
PROGRAMS, MOST = 16, 5  # programs, and samples that one reads at most
LEARNED = PROGRAMS * MOST  # samples that policies are learned from


def cost(given: argparse.Namespace, hidden: int = 64, steps: int = 100) -> Tables:
    """What a round costs beside a loop by hand, which records the same and reads the same by `eb.forward`."""
    W = eb.ParameterCollection(seed=0).add_parameters((hidden, hidden))

    @eb.cell
    def step(h: eb.Expression) -> eb.Expression:
        return eb.tanh(W @ h)

    async def program() -> None:
        h = eb.zeros(hidden)
        for _ in range(steps):
            h = step(h)
            await h

    def by_programs(n: int) -> None:
        with eb.Graph(policy="sufficient"):
            eb.run([program() for _ in range(n)])

    def by_hand(n: int) -> None:
        with eb.Graph(policy="sufficient"):
            hs = [eb.zeros(hidden) for _ in range(n)]
            for _ in range(steps):
                hs = [step(h) for h in hs]
                eb.forward(hs)

    rows = []
    for n in (1, 8, 64):
        runs = interleaved(
            {"run": lambda n=n: by_programs(n), "hand": lambda n=n: by_hand(n)}, given.rounds, warm_ups=2
        )
        more = 1e6 * (min(runs["run"].cpu) - min(runs["hand"].cpu)) / steps
        rows.append(
            {
                "programs": n,
                "a round, us": 1e6 * min(runs["run"].cpu) / steps,
                "by hand, us": 1e6 * min(runs["hand"].cpu) / steps,
                "more, us": more,
                "asked, us": 40 + n,
            }
        )
    return {f"A round of n programs, hidden {hidden} (CPU time, the fastest of all runs)": rows}


class Readers:
    """Programs that read samples of a workload, which are made up.

    Args:
        name: of the workload.
    """

    def __init__(self, name: str) -> None:
        self.workload = get_workload(name)
        self.samples, sizes, _ = self.workload.number(self.workload.generate(3 * LEARNED, 0))
        self.network = self.workload.network(eb.ParameterCollection(seed=0), *sizes, dim=8)

    def whole(self) -> TypedGraph:
        """The graph of the first samples, as it is without programs."""
        with eb.Graph() as graph:
            for sample in self.samples[:LEARNED]:
                self.workload.probabilities(self.network, sample)
        return graph.typed_graph()

    async def read(self, samples: list[Any]) -> None:
        """Wait for each sample."""
        for sample in samples:
            await eb.values(self.workload.probabilities(self.network, sample))

    def ran(self, policy: Policy, begin: int) -> eb.Graph:
        """The graph of rounds that read the samples from `begin` on."""
        firsts = range(begin, begin + LEARNED, MOST)
        with eb.Graph(policy=policy) as graph:
            eb.run([self.read(self.samples[at : at + 1 + k % MOST]) for k, at in enumerate(firsts)])
        return graph


def policies(_: argparse.Namespace) -> Tables:
    """Batches of all rounds."""
    rows = []
    for name in WORKLOADS:
        readers, sufficient = Readers(name), get_policy("sufficient")
        learned = eb.learn([readers.whole()])
        of_rounds = eb.learn([readers.ran(sufficient, 0).typed_graph()])
        row: dict[str, Any] = {
            "workload": name,
            "sufficient": 0,
            "of whole graphs": 0,
            "of rounds": 0,
            "run": 0,
            "bound": 0,
        }
        for begin in (LEARNED, 2 * LEARNED):
            graph = readers.ran(learned, begin)
            runs = graph.typed_graph().runs()
            for key, policy in (("sufficient", sufficient), ("of whole graphs", learned), ("of rounds", of_rounds)):
                row[key] += sum(len(policy.schedule(run)) for run in runs)
            row["run"] += graph.report().batches
            row["bound"] += sum(map(lower_bound, runs))
        rows.append(row | {"run / sufficient": row["run"] / row["sufficient"]})
    return {
        "Batches of rounds, by policies learned of whole graphs and of rounds (run: whole graphs, or sufficient)": rows
    }


def tables(given: argparse.Namespace) -> Tables:
    """Everything that is measured."""
    return cost(given) | policies(given)


main = command(__doc__, tables, rounds=21)

if __name__ == "__main__":
    main()
