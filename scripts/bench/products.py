"""A TreeLSTM over its bare matrix products: op by op, and in cells.

Total is construction in Python to values; products are the same matrix products alone, same shapes, same process.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
from tqdm import tqdm

import edbatch as eb
from edbatch.graph.cell.entry import CellOp
from edbatch.graph.spec import ParameterSpec, Spec
from scripts import data_folder
from scripts.bench.measure import interleaved
from scripts.bench.mini_batches import MiniBatches, samples_of
from scripts.bench.report import Chart, Tables, command, source

VARIANTS: dict[str, dict[str, bool]] = {"op by op": {"cells": False}, "cells": {}}
MEASURED = 4  # mini-batches


def products(graph: eb.Graph, policy: eb.Policy) -> Callable[[], None]:
    """A function that computes the products of every batch that the policy makes, in that order, batch by batch.

    Those in cells are found in the cells' bodies, after their compiler has joined what it joins. A product with a
    parameter is one product of all rows; its weight is one array, used again by every batch as a model uses it, and
    in the order [in, out], which is the fastest. Operands and results have rows of their own, as values have.
    """
    calls: list[tuple[Any, Any, Any]] = []
    weights: dict[Spec, Any] = {}
    random = np.random.default_rng(0)

    def filled(*shape: int) -> Any:
        return random.standard_normal(shape, np.float32)

    for a, b, out, size in products_of(graph, policy):
        if isinstance(a, ParameterSpec) and len(b.shape) == 1:
            if a not in weights:
                weights[a] = filled(*a.shape[::-1])
            calls.append((filled(size, *b.shape), weights[a], np.empty((size, *out.shape), np.float32)))
        else:
            left, right = (filled(1 if isinstance(x, ParameterSpec) else size, *x.shape) for x in (a, b))
            left = left[:, None] if len(a.shape) == 1 else left
            right = right[..., None] if len(b.shape) == 1 else right
            calls.append((left, right, np.empty((size, left.shape[1], right.shape[2]), np.float32)))

    def run() -> None:
        for left, right, out in calls:
            np.matmul(left, right, out=out)

    return run


def products_of(graph: eb.Graph, policy: eb.Policy) -> Iterator[tuple[Spec, Spec, Spec, int]]:
    """Left, right, result of every product of every batch, and the size of the batch."""
    # Names do not tell apart the types of two layers of one class, so the graph's own table is asked.
    evaluation = graph._taken_over()
    bound, nodes = evaluation.table.bound, evaluation.split()
    _, chosen, typed = evaluation.typed_graph(nodes, 0)
    schedule = policy.schedule(typed)
    types = [bound[kind].type for kind in dict.fromkeys(nodes.types[chosen].tolist())]
    assert [type.name for type in types] == [name.partition(" #")[0] for name in typed.names]
    for kind, size in zip(schedule.types.tolist(), np.diff(schedule.offsets).tolist(), strict=True):
        type = types[kind]
        inside = [node.type for node in type.op.body.nodes] if isinstance(type.op, CellOp) else [type]
        for found in inside:
            if found.op.name in ("matmul", "affine"):
                yield found.operands[0], found.operands[1], found.out, size


def row_of(trees: list[Any], hidden: int, size: int, rounds: int) -> dict[str, Any]:
    """Medians over a few mini-batches."""
    found = MiniBatches("tree-lstm", trees[: MEASURED * size], hidden, size)
    policies = {}
    for name, options in VARIANTS.items():
        with eb.options(**options):
            policies[name] = eb.learn(found.graphs(range(1)), progress=False)

    def run(name: str, number: int) -> None:
        with eb.options(**VARIANTS[name]):
            found.run(number, policies[name])

    last = list(VARIANTS)[-1]
    rows: list[dict[str, float]] = []
    for number in range(len(found.batches)):
        sides = {name: lambda name=name, number=number: run(name, number) for name in VARIANTS}
        alone = products(found.build(number, policies[last]), policies[last])
        ms = {name: of.ms() for name, of in interleaved(sides | {"products": alone}, rounds).items()}
        rows.append({"CPU ms": ms[last]} | {f"{name} / products": ms[name] / ms["products"] for name in sides})
    return {"hidden": hidden, "batch": size} | {key: statistics.median(row[key] for row in rows) for key in rows[0]}


def tables(given: argparse.Namespace) -> Tables:
    """Everything."""
    trees = samples_of("tree-lstm", MEASURED * max(given.batch), data_folder())
    points = list(product(given.hidden, given.batch))
    rows = [row_of(trees, *point, given.rounds) for point in tqdm(points, disable=None)]
    return {f"TreeLSTM, {source()}": rows}


chart = Chart("batch", tuple(f"{name} / products" for name in VARIANTS), panel="hidden")
main = command(__doc__, tables, chart=chart, hidden=(64, 256, 512), batch=(1, 32, 64, 256))
