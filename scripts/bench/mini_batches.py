"""Mini-batches of the data that EDBATCH_DATA names, and how long they take beside their matrix products alone."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

import edbatch as eb
from edbatch.experiments.measure import interleaved
from edbatch.experiments.mini_batches import MiniBatches, samples_of
from scripts import data_folder
from scripts.bench.products import products


def samples(name: str, n: int) -> list[Any]:
    """The first samples of a workload, made up where there is no data."""
    return samples_of(name, n, data_folder())


def source() -> str:
    """What `samples` are, for the title of a table."""
    return "made-up data" if data_folder() is None else "real data"


def over_products(
    mini_batches: MiniBatches, variants: Mapping[str, Mapping[str, bool]], rounds: int, most: int = 4
) -> dict[str, dict[str, float]]:
    """By variant, medians over mini-batches: milliseconds, construction to values, their ratio to products, stages.

    Args:
        mini_batches: what is run.
        variants: by name, options; the products are those of the last one's graphs.
        rounds: runs of each.
        most: mini-batches that are measured.
    """
    policies = {}
    for name, options in variants.items():
        with eb.options(**options):
            policies[name] = mini_batches.learned()

    def run(name: str, number: int) -> eb.Graph:
        with eb.options(**variants[name]):
            return mini_batches.run(number, policies[name])

    def stages(name: str, number: int) -> dict[str, float]:
        with eb.options(**variants[name]):
            return mini_batches.stages(number, policies[name])

    last = list(variants)[-1]
    rows: dict[str, list[dict[str, float]]] = {name: [] for name in variants}
    for number in range(min(most, len(mini_batches.batches))):
        with eb.options(**variants[last]):
            alone = products(mini_batches.build(number, policies[last]), policies[last])
        timed = {name: lambda name=name, number=number: run(name, number) for name in variants}
        found = interleaved(timed | {"products": alone}, rounds)
        for name in variants:
            ratio = found[name].seconds / found["products"].seconds
            by_stage = {f"{stage} ms": 1e3 * value for stage, value in stages(name, number).items()}
            rows[name].append({**found[name].ms(), "total / products": ratio, **by_stage})
    return {name: {key: statistics.median(row[key] for row in of) for key in of[0]} for name, of in rows.items()}
