"""Mini-batches over their bare matrix products: forward and in training, op by op and in cells.

Total is construction in Python to the loss, and back to the gradients; products are the same matrix products alone,
same shapes, same process.
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
from edbatch.models.workloads import WORKLOADS
from scripts import data_folder
from scripts.bench.measure import interleaved
from scripts.bench.mini_batches import samples_of
from scripts.bench.report import Chart, Tables, command, source

VARIANTS: dict[str, dict[str, bool]] = {"op by op": {"cells": False}, "cells": {}}
MEASURED = 4  # mini-batches
Call = tuple[Any, Any, Any]  # left, right, result


def products(graph: eb.Graph, policy: eb.Policy, trains: bool) -> Callable[[], None]:
    """A function that computes the products of every batch that the policy makes, in that order, batch by batch.

    Those in cells are found in the cells' bodies, after their compiler has joined what it joins. A product with a
    parameter is one product of all rows; its weight is one array, used again by every batch as a model uses it, and
    in the order [in, out], which is the fastest. Operands and results have rows of their own, as values have.
    Backward, each batch has a product for its operands, and each parameter one, over the rows of all batches.
    """
    forward: list[Call] = []
    back: list[Call] = []
    weights: dict[Any, Any] = {}
    rows: dict[Any, int] = {}  # of all batches, by parameter
    random = np.random.default_rng(0)

    def filled(*shape: int) -> Any:
        return random.standard_normal(shape, np.float32)

    def add(calls: list[Call], left: Any, right: Any) -> None:
        calls.append((left, right, np.empty((*left.shape[:-1], right.shape[-1]), np.float32)))

    for a, b, out, size in products_of(graph, policy):
        if isinstance(a, ParameterSpec) and len(b.shape) == 1:
            if a not in weights:
                weights[a] = filled(*a.shape[::-1])
            add(forward, filled(size, *b.shape), weights[a])
            add(back, filled(size, *out.shape), weights[a].T)
            rows[a] = rows.get(a, 0) + size
        else:
            left, right = (filled(1 if isinstance(x, ParameterSpec) else size, *x.shape) for x in (a, b))
            left = left[:, None] if len(a.shape) == 1 else left
            right = right[..., None] if len(b.shape) == 1 else right
            gradient = filled(size, left.shape[1], right.shape[2])
            add(forward, np.broadcast_to(left, (size, *left.shape[1:])), right)
            add(back, gradient, right.mT)
            add(back, left.mT, gradient)
    for a, n in rows.items():
        add(back, filled(n, a.shape[1]).T, filled(n, a.shape[0]))
    calls = forward + back if trains else forward

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


def row_of(name: str, samples: list[Any], hidden: int, size: int, way: str, rounds: int) -> dict[str, Any]:
    """Medians over a few mini-batches."""
    workload, model = WORKLOADS[name], eb.ParameterCollection(seed=0)
    labelled, (_, sizes, _) = workload.labelled(samples[: MEASURED * size])
    network = workload.network(model, *sizes, hidden)
    batches = [labelled[at : at + size] for at in range(0, len(labelled), size)]
    policies = {}

    def build(number: int, policy: eb.Policy | None = None) -> tuple[eb.Graph, eb.Expression]:
        with eb.Graph(policy=policy) as graph:
            return graph, eb.sum(workload.losses(network, batches[number]))

    def run(variant: str, number: int) -> None:
        with eb.options(**VARIANTS[variant]):
            _, loss = build(number, policies[variant])
            if way == "train":
                loss.backward()
                model.zero_grad()
            else:
                loss.value()

    for variant, options in VARIANTS.items():
        with eb.options(**options):
            policies[variant] = eb.learn([build(0)[0].typed_graph()], progress=False)
    last = list(VARIANTS)[-1]
    rows: list[dict[str, float]] = []
    for number in range(len(batches)):
        sides = {variant: lambda variant=variant, number=number: run(variant, number) for variant in VARIANTS}
        alone = products(build(number, policies[last])[0], policies[last], way == "train")
        ms = {side: of.ms() for side, of in interleaved(sides | {"products": alone}, rounds).items()}
        rows.append({"CPU ms": ms[last]} | {f"{side} / products": ms[side] / ms["products"] for side in sides})
    place = {"workload": name, "way": way, "hidden": hidden, "batch": size}
    return place | {key: statistics.median(row[key] for row in rows) for key in rows[0]}


def tables(given: argparse.Namespace) -> Tables:
    """Everything."""
    folder, rows = data_folder(), []
    points = list(product(given.workload, given.way, given.hidden, given.batch))
    for name, way, hidden, size in tqdm(points, disable=None):
        samples = samples_of(name, MEASURED * max(given.batch), folder)
        rows.append(row_of(name, samples, hidden, size, way, given.rounds))
    return {f"Over the matrix products, {source()}": rows}


chart = Chart("batch", tuple(f"{name} / products" for name in VARIANTS), panel="hidden")
WORKLOAD, WAY = ("tree-lstm", "tagger", "lattice-lstm"), ("forward", "train")
main = command(__doc__, tables, chart=chart, workload=WORKLOAD, way=WAY, hidden=(64, 256), batch=(64,))
