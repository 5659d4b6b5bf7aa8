"""Recursion's table 3: trees whose shape follows from what is computed, which cannot be folded."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.experiments.charts import Bars
from edbatch.experiments.contest import missing, rates, timed
from edbatch.experiments.experiment import Experiment, Pivot, Point, Row, Setting, grid
from edbatch.experiments.papers import RECURSION
from edbatch.models import TreeGenerator

WORDS, TOPICS, SIZE, DEEPEST = 100, 4, 150, 6
SPLITS = 7.0  # what is added to the score of "two children", so that untrained networks say trees and not words


def generator() -> TreeGenerator:
    """An untrained network that says trees."""
    network = TreeGenerator(eb.ParameterCollection(seed=0), WORDS, TOPICS, SIZE)
    bias = network.b_out.value().copy()
    bias[-1] += SPLITS
    network.b_out.set_value(bias)
    return network


def grow(network: TreeGenerator, batch: int, limit: int | None) -> list[Any]:
    """As many trees, each with draws of its own; `limit` at once."""
    draws = [np.random.default_rng(number) for number in range(batch)]
    programs = [network.grow(number % TOPICS, DEEPEST, random) for number, random in enumerate(draws)]
    return eb.run(programs) if limit is None else eb.run(programs, limit=limit)


def points(setting: Setting) -> list[Point]:
    """By batch size, as in the paper."""
    return grid(batch=(1, 64))


def measure(setting: Setting, point: Point) -> list[Row]:
    """All trees at once, and one after the other; the two sides of a tree grow at once in both."""
    network, batch = generator(), point["batch"]
    sides = {"edbatch": partial(grow, network, batch, None), "edbatch, one at a time": partial(grow, network, batch, 1)}
    first, second = (side() for side in sides.values())
    if first != second:
        raise eb.EdBatchError("recursion-dynamic: trees that grow together differ from those that grow one by one")
    absent = {"pytorch": "nobody has written it in PyTorch"}
    return [*rates(timed(sides, setting), batch), *missing(absent)]


EXPERIMENT = Experiment(
    name="recursion-dynamic",
    paper=RECURSION,
    place="table 3",
    shows=f"Trees a second that a top-down TreeLSTM says, {DEEPEST} levels at most, size {SIZE}: what comes next is "
    "known once it is computed.",
    points=points,
    measure=measure,
    charts=[Bars("batch", "samples/s", title="trees/s", log=True)],
    theirs=[
        {"batch": batch, "side": side, "samples/s": value}
        for side, values in (("iterative", (0.30, 0.34)), ("recursive", (5.59, 9.30)))
        for batch, value in zip((1, 64), values, strict=True)
    ],
    pivot=Pivot(("batch",), "samples/s"),
    remark="The paper completes sentences with Zhang et al.'s network of 2016, and does not say how large its trees "
    "are; folding is not supported there. This network is simpler and untrained; its trees have 38 leaves on average.",
)
