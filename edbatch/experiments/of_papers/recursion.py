"""Recursion's figures 7 and 8 and table 2: trees a second of three recursive networks, in training and inference."""

from __future__ import annotations

from collections.abc import Callable

import edbatch as eb
from edbatch.experiments import torch_forms
from edbatch.experiments.charts import Lines, Rows
from edbatch.experiments.contest import Task, contested, missing, rates, timed
from edbatch.experiments.experiment import Experiment, Pivot, Point, Row, Setting, grid
from edbatch.experiments.mini_batches import MiniBatches, samples_of
from edbatch.experiments.papers import RECURSION

SIZES = {"tree-rnn": 32, "rntn": 32, "tree-lstm": 150}  # of states, about as in the models' own papers
MODES = ("inference", "training")
TABLE_2 = {  # by batch size: iterative, recursive, folding
    "inference": {1: (19.2, 81.4, 16.5), 10: (49.3, 217.9, 52.2), 25: (72.1, 269.9, 61.6)},
    "training": {1: (2.5, 4.8, 9.0), 10: (4.0, 4.2, 37.5), 25: (5.5, 3.6, 54.7)},
}


def points(setting: Setting) -> list[Point]:
    """By network and batch size, as in the paper."""
    return grid(model=list(SIZES), mode=MODES, batch=(1, 25) if setting.quick else (1, 10, 25))


def measure(setting: Setting, point: Point) -> list[Row]:
    """One mini-batch, forward or forward and back, by all sides."""
    name, hidden, batch, training = point["model"], SIZES[point["model"]], point["batch"], point["mode"] == "training"
    if name == "tree-lstm":
        return contested(name, hidden, batch, setting, training=training)
    trees = samples_of(name, batch, setting.folder)
    found = MiniBatches(name, trees, hidden, batch)
    labels = sorted({label for tree in trees for label in tree.labels})
    samples = [
        (*sample, tuple(map(labels.index, tree.labels))) for sample, tree in zip(found.batches[0], trees, strict=True)
    ]
    network = found.network

    def loss(sample: tuple) -> eb.Expression:
        return network.loss(*sample)

    task = Task(found.model, loss, samples, "sufficient", training, network.W)
    others = torch_forms.trees(name, found.model, samples, training) if torch_forms.available() else {}
    task.check(others)
    absent = {} if others else dict.fromkeys(("pytorch per sample", "pytorch by hand, by level"), torch_forms.MISSING)
    return [*rates(timed(task.sides() | others, setting), batch), *missing(absent)]


def _of(mode: str) -> Callable[[Rows], Rows]:
    return lambda rows: [row for row in rows if row["mode"] == mode]


EXPERIMENT = Experiment(
    name="recursion",
    paper=RECURSION,
    place="figures 7 and 8, table 2",
    shows="Trees a second by batch size: TreeRNN and RNTN of size 32, TreeLSTM of size 150; in inference and training.",
    points=points,
    measure=measure,
    charts=[
        Lines("batch", "samples/s", panel="model", log=True, title=f"trees/s, {mode}", of=_of(mode))
        for mode in MODES
    ],
    theirs=[
        {"model": "tree-lstm", "mode": mode, "batch": batch, "side": side, "samples/s": value}
        for mode, table in TABLE_2.items()
        for batch, values in table.items()
        for side, value in zip(("iterative", "recursive", "folding"), values, strict=True)
    ],
    pivot=Pivot(("model", "mode", "batch"), "samples/s"),
    remark="Their trees are of the Large Movie Review data set. Of figures 7 and 8 the paper prints no numbers; "
    "its text says that recursion is up to 3.3 (training) and 5.4 times (inference) as fast as iteration, and up to "
    "30.2 and 147.9 times as fast as PyTorch, tree by tree.",
)  # fmt: skip
