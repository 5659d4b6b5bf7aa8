"""Suarez and Zhu's figure 3: experts, of which each sample asks one; how many times as fast all of one are together.

Execution alone is what the paper (2019) measures, on an NVIDIA GTX 1080 Ti; its experts have a hidden layer of 256 and
as many outputs as there are experts, these have one layer of 256 x 256. 10,000 experts would be 2.6 GB of weights.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np
from tqdm import tqdm

import edbatch as eb
from edbatch.models import MixtureOfExperts
from scripts.bench.contest import compare
from scripts.bench.measure import interleaved
from scripts.bench.report import Tables, command

SIZE = 256
SIZES = (1, 10, 100, 1000)
THEIRS = {  # by batch size, over 1, 10, 100, 1,000 and 10,000 experts
    1: (1.79, 0.86, 1.22, 0.98, 1.01), 10: (10.7, 1.65, 1.33, 0.99, 1.03), 100: (89.0, 9.80, 1.56, 1.00, 1.00),
    1000: (676, 87.4, 9.40, 1.41, 1.00), 10_000: (1190, 699, 86.2, 9.43, 1.00),
}  # fmt: skip


def in_torch(layer: MixtureOfExperts, asked: list[int], samples: np.ndarray) -> dict[str, Callable[[], Any]]:
    """One sample after the other; and those of an expert together, as the paper has it."""
    import torch

    torch.set_num_threads(1)
    linear, xs = torch.nn.functional.linear, torch.tensor(samples)
    known = {number: layer.experts[number] for number in set(asked)}
    experts = {number: (torch.tensor(one.W.value()), torch.tensor(one.b.value())) for number, one in known.items()}
    groups = [(torch.tensor(np.flatnonzero(np.array(asked) == number)), *of) for number, of in experts.items()]

    def one_by_one() -> Any:
        return torch.stack([torch.tanh(linear(x, *experts[number])) for x, number in zip(xs, asked, strict=True)])

    def by_hand() -> Any:
        ys = torch.empty_like(xs)
        for rows, W, b in groups:
            ys[rows] = torch.tanh(linear(xs[rows], W, b))
        return ys

    return {"PyTorch one by one": one_by_one, "PyTorch by hand": by_hand}


def row_of(count: int, batch: int, rounds: int) -> dict[str, Any]:
    """One mini-batch: each sample asks an expert that is drawn for it."""
    random = np.random.default_rng(0)
    layer = MixtureOfExperts(eb.ParameterCollection(seed=0), count, SIZE, SIZE)
    asked, xs = random.integers(count, size=batch).tolist(), random.standard_normal((batch, SIZE)).astype(np.float32)

    def run(policy: str) -> tuple[eb.Graph, list[Any]]:
        with eb.Graph(policy=policy) as graph:
            ys = [layer.experts[number].answer(x) for number, x in zip(asked, eb.array(xs), strict=True)]
            graph.run()
        return graph, ys

    def execution(policy: str) -> dict[str, float]:
        return {"s": run(policy)[0].report().seconds["execution"]}

    sides: dict[str, Callable[[], Any]] = {
        "EdBatch one by one": lambda: execution("none"), "EdBatch": lambda: execution("sufficient"),
    }  # fmt: skip
    others = in_torch(layer, asked, xs) if find_spec("torch") else {}
    expected = {"": np.array(eb.forward(run("sufficient")[1]))}
    compare("EdBatch one by one", {"": np.array(eb.forward(run("none")[1]))}, expected)
    for name, other in others.items():
        compare(name, {"": other().numpy()}, expected)
    runs = interleaved(sides | others, rounds, limit=20)
    # The least of many runs: most take some microseconds, by the clock.
    seconds = {name: min(of.figures["s"] if name in sides else of.wall) for name, of in runs.items()}
    found = {"experts": count, "batch": batch, "EdBatch": seconds["EdBatch one by one"] / seconds["EdBatch"]}
    if others:
        one_by_one = seconds["PyTorch one by one"]
        found |= {"EdBatch, over PyTorch one by one": one_by_one / seconds["EdBatch"]}
        found |= {"PyTorch by hand": one_by_one / seconds["PyTorch by hand"]}
    theirs = THEIRS.get(batch, ())[SIZES.index(count) :][:1] if count in SIZES else ()
    return found | {"the paper's": theirs[0] if theirs else ""}


def tables(given: argparse.Namespace) -> Tables:
    """Everything."""
    points = list(product(given.experts, given.batch))
    return {"Times as fast": [row_of(*point, given.rounds) for point in tqdm(points, disable=None)]}


main = command(__doc__, tables, rounds=15, experts=SIZES, batch=tuple(THEIRS))
