"""TreeLSTM, BiLSTM tagger and lattice LSTM against their products alone; how ED-Batch's models reach memory.

    EDBATCH_DATA=... python -m scripts.bench.workloads [--json] [--rounds 5] [--workload tagger] [--hidden 64]

Total is construction to values; products are the same matrix products alone, same shapes, same process. "Replayed" is
the total of samples that have been recorded before (`eb.replay`), in mini-batches of another order each time. Policies
are learned from mini-batches that are not measured. Without EDBATCH_DATA the samples are made up.
"""

from __future__ import annotations

import argparse
from typing import Any

from tqdm import tqdm

from edbatch.experiments.measure import STAGES, interleaved
from edbatch.experiments.mini_batches import MiniBatches
from edbatch.models.workloads import NINE, WORKLOADS
from scripts.bench.mini_batches import samples, source
from scripts.bench.products import products as products_of
from scripts.bench.report import Tables, command

TIMED = ("tree-lstm", "tagger", "lattice-lstm")
RECORDED = [name for name, workload in WORKLOADS.items() if not workload.program]  # before anything runs
MINI_BATCHES = {1: (32, 32), 256: (1, 2)}  # to learn from, and to measure, by batch size


def prepared(name: str, hidden: int, size: int) -> tuple[MiniBatches, range, Any]:
    """Mini-batches, which of them are measured, and the policy that was learned from the others."""
    learned, measured = MINI_BATCHES.get(size, (2, 3))
    found = MiniBatches(name, samples(name, (learned + measured) * size), hidden, size)
    return found, range(learned, len(found.batches)), found.learned(range(learned))


def time_of(name: str, hidden: int, size: int, rounds: int) -> dict[str, Any]:
    """Total over products, and every stage, per mini-batch: medians of rounds; a round runs all mini-batches."""
    found, numbers, policy = prepared(name, hidden, size)
    alone = [products_of(found.build(number, policy), policy) for number in numbers]

    def total() -> None:
        for number in numbers:
            found.run(number, policy)

    def replayed() -> None:
        for number in numbers:
            found.replay(number, policy)

    def products() -> None:
        for run in alone:
            run()

    def stages() -> dict[str, float]:
        within = [found.stages(number, policy) for number in numbers]
        return {f"{stage}, ms": 1e3 * sum(of[stage] for of in within) / len(numbers) for stage in STAGES}

    runs = interleaved({"total": total, "replayed": replayed, "products": products}, rounds)
    return {
        "workload": name,
        "hidden": hidden,
        "batch": size,
        **runs["total"].ms(len(numbers)),
        **runs["products"].ms(len(numbers), "products, ms"),
        "total / products": runs["total"].seconds / runs["products"].seconds,
        **runs["replayed"].ms(len(numbers), "replayed, ms"),
        "replayed / products": runs["replayed"].seconds / runs["products"].seconds,
        **interleaved({"": stages}, rounds, warm_ups=0)[""].medians(),
    }


def memory_of(name: str, size: int = 64) -> dict[str, Any]:
    """Batches and the bound, operands used in place and copied together; sums over mini-batches."""
    found, numbers, policy = prepared(name, 64, size)
    reports = [found.run(number, policy).report() for number in numbers]

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
        "gathered bytes / operand bytes": gathered / max(1, gathered + total("viewed_bytes")),
    }


def tables(options: argparse.Namespace) -> Tables:
    """Everything."""
    timed, all_of_them = options.workload or TIMED, options.workload or NINE
    points = [(name, hidden, size) for name in timed for hidden in options.hidden for size in options.batch]
    return {
        f"Workloads on {source()}, construction to values": [
            time_of(*point, options.rounds) for point in tqdm(points, disable=None)
        ],
        f"Memory access on {source()}, hidden 64, batch 64": [
            memory_of(name) for name in tqdm(all_of_them, disable=None)
        ],
    }


main = command(
    __doc__,
    tables,
    workload={"nargs": "+", "choices": RECORDED, "help": "default: all that are asked for"},
    hidden=(64, 256, 512),
    batch=(1, 32, 64, 256),
)

if __name__ == "__main__":
    main()
