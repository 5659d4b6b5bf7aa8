"""Cavs's figure 8: training four models, by batch size and by model size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.data.tagged import random_tagged, stream_tagged
from edbatch.data.vocabulary import Vocabulary
from edbatch.experiments import torch_forms
from edbatch.experiments.charts import Lines, Rows
from edbatch.experiments.contest import Task, contested, missing, rates, timed
from edbatch.experiments.experiment import Experiment, Pivot, Point, Row, Setting, grid
from edbatch.experiments.papers import CAVS
from edbatch.models import LanguageModel, TreeFC

BATCHES, HIDDENS = (1, 16, 32, 64, 128, 256), (64, 128, 256, 512, 1024)
AT_HIDDEN, AT_BATCH = 512, 64  # where the other is varied
QUICK_BATCHES, QUICK_HIDDEN = (1, 32), 64
EPOCH = 8544  # trees


@dataclass
class Problem:
    """What is trained.

    Attributes:
        model: its parameters.
        loss: of a sample.
        samples: of a mini-batch.
        checked: a parameter whose gradient is compared.
        by_hand: makes the same in PyTorch, batched by hand.
    """

    model: eb.ParameterCollection
    loss: Callable[[Any], eb.Expression]
    samples: Sequence[Any]
    checked: eb.Parameter
    by_hand: Callable[[], torch_forms.Form]


def language_model(sentences: list[Any], words: int, hidden: int) -> Problem:
    """Words from those before them."""
    model = eb.ParameterCollection(seed=0)
    network = LanguageModel(model, words, hidden)
    by_hand = lambda: torch_forms.language_model(network, sentences, training=True)  # noqa: E731
    return Problem(model, network.loss, sentences, network.W_out, by_hand)


def fixed_lstm(setting: Setting, hidden: int, batch: int) -> Problem:
    """Sentences of 64 words (quick: 16) of a vocabulary of 10,000 (500)."""
    words, length = (500, 16) if setting.quick else (10_000, 64)
    drawn = np.random.default_rng(0).integers(3, words, (batch, length - 1))
    return language_model([tuple(sentence) for sentence in drawn.tolist()], words, hidden)


def var_lstm(setting: Setting, hidden: int, batch: int) -> Problem:
    """Sentences as they come, of the data's vocabulary, at most 10,000 words (500)."""
    most = 500 if setting.quick else 10_000
    path = None if setting.folder is None else setting.folder / "wikiner" / "train.txt"
    found = random_tagged(batch, 0) if path is None else stream_tagged(path).take(batch)
    numbers = Vocabulary(word for sentence in found for word in sentence.words)
    sentences = [tuple(3 + numbers[word] % (most - 3) for word in sentence.words) for sentence in found]
    return language_model(sentences, most, hidden)


def tree_fc(setting: Setting, hidden: int, batch: int, leaves: int | None = None) -> Problem:
    """Complete trees of 256 leaves (quick: 32); the loss is the sum of the root."""
    leaves = leaves or (32 if setting.quick else 256)
    model = eb.ParameterCollection(seed=0)
    embed = model.add_lookup_parameters((1000, hidden), name="embed")
    network = TreeFC(model, hidden, hidden)
    drawn = np.random.default_rng(0).integers(0, 1000, (batch, leaves))
    samples = [tuple(tree) for tree in drawn.tolist()]
    by_hand = lambda: torch_forms.full_trees(network, embed, samples, training=True)  # noqa: E731

    def loss(tree: tuple[int, ...]) -> eb.Expression:
        return network.root([eb.lookup(embed, word) for word in tree]).sum()

    return Problem(model, loss, samples, network.W, by_hand)


PROBLEMS: dict[str, Callable[[Setting, int, int], Problem]] = {
    "fixed-lstm": fixed_lstm, "var-lstm": var_lstm, "tree-fc": tree_fc,
}  # fmt: skip
MODELS = (*PROBLEMS, "tree-lstm")


def points(setting: Setting) -> list[Point]:
    """By model, at one size by batch size, and at one batch size by size."""
    if setting.quick:
        return grid(model=MODELS, hidden=[QUICK_HIDDEN], batch=QUICK_BATCHES)
    pairs = [(AT_HIDDEN, batch) for batch in BATCHES]
    pairs += [(hidden, AT_BATCH) for hidden in HIDDENS if hidden != AT_HIDDEN]
    return [{"model": model, "hidden": hidden, "batch": batch} for model in MODELS for hidden, batch in pairs]


def measure(setting: Setting, point: Point) -> list[Row]:
    """One mini-batch, forward and back, by all sides."""
    hidden, batch = point["hidden"], point["batch"]
    if point["model"] == "tree-lstm":
        rows = contested("tree-lstm", hidden, batch, setting, training=True)
        return [{**row, "s per epoch": EPOCH / row["samples/s"]} if "samples/s" in row else row for row in rows]
    problem = PROBLEMS[point["model"]](setting, hidden, batch)
    task = Task(problem.model, problem.loss, problem.samples, "sufficient", True, problem.checked)
    others = {"pytorch by hand": problem.by_hand()} if torch_forms.available() else {}
    task.check(others)
    absent = {} if others else {"pytorch by hand": torch_forms.MISSING}
    return [*rates(timed(task.sides() | others, setting), batch), *missing(absent)]


def _at(column: str, *values: int) -> Callable[[Rows], Rows]:
    return lambda rows: [row for row in rows if row[column] in values]


EXPERIMENT = Experiment(
    name="cavs-training",
    paper=CAVS,
    place="figure 8",
    shows="Samples a second in training (forward and back), by batch size at size 512 and by size at batch size 64 "
    "(quick: at size 64 by batch size).",
    points=points,
    measure=measure,
    charts=[
        Lines("batch", "samples/s", panel="model", log=True, of=_at("hidden", AT_HIDDEN, QUICK_HIDDEN)),
        Lines("hidden", "samples/s", panel="model", log=True, of=_at("batch", AT_BATCH)),
    ],
    theirs=[
        {"model": "fixed-lstm", "batch": batch, "side": "Cavs", "times batch 1": times}
        for batch, times in ((2, 1.7), (4, 3.8), (8, 7.0), (16, 12.0), (32, 15.0), (64, 25.0), (128, 36.0))
    ]
    + [
        {"model": "tree-lstm", "batch": 256, "side": side, "s per epoch": seconds}
        for side, seconds in (("Cavs", 1.87), ("PyTorch", 542.0))
    ],
    pivot=Pivot(("model", "hidden", "batch"), "samples/s"),
    remark="Of figure 8 the paper prints no numbers; these are from its text, at size 512: Cavs with and without "
    "batching, and PyTorch, which is said to take 290 times as long. Its TreeLSTM sums over children, "
    "ours has a gate for each.",
)
