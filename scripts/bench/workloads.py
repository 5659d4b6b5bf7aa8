"""TreeLSTM, BiLSTM tagger and lattice LSTM against their matrix products alone, and how all models reach memory.

    EDBATCH_DATA=... python -m scripts.bench.workloads [--json] [--rounds 5] [--workload tagger] [--hidden 64]

Total is construction to values; products are the same matrix products alone, same shapes, same process. Policies are
learned from mini-batches that are not measured. Without EDBATCH_DATA the samples are made up.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from tqdm import tqdm

import edbatch as eb
from edbatch.models.workloads import WORKLOADS
from scripts import data_folder
from scripts.bench import report as bench
from scripts.bench.products import products

TIMED = ("tree-lstm", "tagger", "lattice-lstm")
MINI_BATCHES = {1: (32, 32), 256: (1, 2)}  # to learn from, and to measure, by batch size
STAGES = ("construction", "lowering", "scheduling", "planning", "execution")


class Runner:
    """Mini-batches of a workload, and a model for them.

    Args:
        name: of the workload.
        folder: with the real data; None: the samples are made up.
        hidden: size of the model's states.
        batch_size: samples.
    """

    def __init__(self, name: str, folder: Path | None, hidden: int, batch_size: int) -> None:
        self.workload = WORKLOADS[name]
        learned, measured = MINI_BATCHES.get(batch_size, (2, 3))
        n = (learned + measured) * batch_size
        if folder is None:
            found = self.workload.generate(n, 0)
        else:
            found = self.workload.read(*(folder / path for path in self.workload.folder))[:n]
        samples, sizes, _ = self.workload.number(found)
        self.network = self.workload.network(eb.ParameterCollection(seed=0), *sizes, hidden)
        mini_batches = [samples[at : at + batch_size] for at in range(0, len(samples), batch_size)]
        self.mini_batches = mini_batches[learned:]
        self.policy = eb.learn([self.build(of).typed_graph() for of in mini_batches[:learned]], progress=False)

    def build(self, mini_batch: list[Any], policy: eb.Policy | None = None) -> eb.Graph:
        """The graph of one mini-batch."""
        with eb.Graph(policy=policy) as graph:
            for sample in mini_batch:
                self.workload.probabilities(self.network, sample)
        return graph

    def run(self, mini_batch: list[Any]) -> eb.Graph:
        """Build and run it."""
        graph = self.build(mini_batch, self.policy)
        graph.run()
        return graph


def time_of(name: str, folder: Path | None, hidden: int, batch_size: int, rounds: int) -> dict[str, Any]:
    """Total over products, and every stage, per mini-batch: medians of rounds; a round runs all mini-batches."""
    runner = Runner(name, folder, hidden, batch_size)
    n = len(runner.mini_batches)
    alone = [products(runner.build(mini_batch), runner.policy) for mini_batch in runner.mini_batches]

    def run_all() -> None:
        for mini_batch in runner.mini_batches:
            runner.run(mini_batch)

    def run_products() -> None:
        for run in alone:
            run()

    seconds = bench.interleaved({"total": run_all, "products": run_products}, rounds)
    # In runs of their own: making a report takes as long as a small mini-batch.
    reports = [[runner.run(mini_batch).report() for mini_batch in runner.mini_batches] for _ in range(rounds)]
    stages = {stage: statistics.median(sum(of.seconds[stage] for of in one) for one in reports) for stage in STAGES}
    return {
        "workload": name,
        "hidden": hidden,
        "batch": batch_size,
        "ms": 1e3 * seconds["total"] / n,
        "products, ms": 1e3 * seconds["products"] / n,
        "total / products": seconds["total"] / seconds["products"],
        **{f"{stage}, ms": 1e3 * value / n for stage, value in stages.items()},
    }


def memory_of(name: str, folder: Path | None, batch_size: int = 64) -> dict[str, Any]:
    """Batches and the bound, operands used in place and copied together; sums over mini-batches."""
    runner = Runner(name, folder, 64, batch_size)
    reports = [runner.run(mini_batch).report() for mini_batch in runner.mini_batches]

    def total(attribute: str) -> int:
        return sum(getattr(report, attribute) for report in reports)

    gathered = total("gathered_bytes")
    return {
        "workload": name,
        "nodes": total("nodes"),
        "batches": total("batches"),
        "lower bound": total("lower_bound"),
        "operands in place": total("viewed"),
        "gathered": total("gathered"),
        "gathered bytes / operand bytes": gathered / (gathered + total("viewed_bytes")),
    }


def main() -> None:
    parser = bench.parser(__doc__.splitlines()[0])
    parser.add_argument(
        "--workload", nargs="+", choices=WORKLOADS, default=None, help="default: all that are asked for"
    )
    parser.add_argument("--hidden", nargs="+", type=int, default=(64, 256, 512))
    parser.add_argument("--batch", nargs="+", type=int, default=(1, 32, 64, 256))
    options = parser.parse_args()
    folder = data_folder()
    points = [
        (name, hidden, size)
        for name in options.workload or TIMED
        for hidden in options.hidden
        for size in options.batch
    ]
    times = [time_of(name, folder, hidden, size, options.rounds) for name, hidden, size in tqdm(points, disable=None)]
    memory = [memory_of(name, folder) for name in tqdm(options.workload or WORKLOADS, disable=None)]
    source = "real data" if folder else "made-up data"
    bench.finish(
        {
            f"Workloads on {source}, construction to values": times,
            f"Memory access on {source}, hidden 64, batch 64": memory,
        },
        options.json,
    )


if __name__ == "__main__":
    main()
