"""Cells split around recurrences, against whole cells and against a split by hand, on sentences of WikiNER.

    EDBATCH_DATA=... python -m scripts.bench.split [--json] [--rounds 9]

`Tagger` is two bidirectional LSTM layers; `LanguageModel` is one LSTM whose step returns the probabilities of 2,000
words. By hand: the projection of the input and the read-out are cells of their own.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import edbatch as eb
from edbatch.experiments.measure import STAGES, interleaved
from edbatch.models import LSTM, Bidirectional
from scripts.bench.report import Tables, command, needed_folder

WORDS = 2000


class ByHand(LSTM):
    """An LSTM whose input is projected by a cell of its own."""

    def step(self, x, h, c):  # type: ignore[override]
        """Output and cell state."""
        return self.update(self.project(x), h, c)

    @eb.cell
    def project(self, x):
        """W x + b."""
        return eb.affine(self.W, x, self.b)

    @eb.cell
    def update(self, projected, h, c):
        """Output and cell state."""
        i, f, o, u = eb.split(projected + self.U @ h, 4)
        c = eb.sigmoid(f) * c + eb.sigmoid(i) * eb.tanh(u)
        return eb.sigmoid(o) * eb.tanh(c), c


class Tagger:
    """Outputs of two layers for the words of a sentence."""

    def __init__(self, layer: type[LSTM], words: int, dim: int) -> None:
        model = eb.ParameterCollection(seed=0)
        self.embed = model.add_lookup_parameters((words, dim), name="embed")
        self.low, self.high = (
            Bidirectional(*(layer(model, size, dim, name=f"{name}{way}") for way in "rl"))
            for name, size in (("low", dim), ("high", 2 * dim))
        )

    def run(self, sentence: list[int]) -> None:
        """Record a sentence."""
        self.high.transduce(self.low.transduce([eb.lookup(self.embed, word) for word in sentence]))


class LanguageModel:
    """Probabilities of the next word, at every word."""

    def __init__(self, layer: type[LSTM], words: int, dim: int) -> None:
        model = eb.ParameterCollection(seed=0)
        self.embed = model.add_lookup_parameters((words, dim), name="embed")
        self.lstm = layer(model, dim, dim)
        self.W = model.add_parameters((WORDS, dim), name="W")
        self.b = model.add_parameters((WORDS,), name="b")
        self.by_hand = layer is ByHand

    def run(self, sentence: list[int]) -> None:
        """Record a sentence."""
        h, c = self.lstm.initial_state().vectors
        for word in sentence:
            if self.by_hand:
                h, c = self.lstm.step(eb.lookup(self.embed, word), h, c)
                self.read_out(h)
            else:
                h, c, _ = self.step(eb.lookup(self.embed, word), h, c)

    @eb.cell
    def step(self, x, h, c):
        """Output, cell state, probabilities."""
        h, c = self.lstm.step(x, h, c)
        return h, c, self.read_out(h)

    @eb.cell
    def read_out(self, h):
        """Probabilities."""
        return eb.softmax(eb.affine(self.W, h, self.b))


VARIANTS: dict[str, tuple[type[LSTM], dict[str, bool]]] = {
    "whole": (LSTM, {"split": False}),
    "by hand": (ByHand, {}),
    "split": (LSTM, {}),
}


def measured(make: Callable[..., Any], sentences: list[list[int]], hidden: int, rounds: int) -> list[dict[str, Any]]:
    """One mini-batch by every variant, construction to values."""
    words = 1 + max(map(max, sentences))
    reports: dict[str, eb.Report] = {}

    def runner(name: str, layer: type[LSTM], options: dict[str, bool]) -> Callable[[], dict[str, float]]:
        model = make(layer, words, hidden)

        def record(policy: eb.Policy | None) -> eb.Graph:
            with eb.options(**options), eb.Graph(policy=policy) as graph:
                for sentence in sentences:
                    model.run(sentence)
            return graph

        policy = eb.learn([record(None).typed_graph()], progress=False)

        def run() -> dict[str, float]:
            with eb.options(**options):
                graph = record(policy)
                graph.run()
            report = reports[name] = graph.report()
            return {f"{stage} ms": 1e3 * report.seconds.get(stage, 0.0) for stage in STAGES}

        return run

    runs = interleaved({name: runner(name, *variant) for name, variant in VARIANTS.items()}, rounds, warm_ups=2)
    return [
        {
            "model": make.__name__,
            "hidden": hidden,
            "cells": name,
            **runs[name].ms(),
            **runs[name].medians(),
            "nodes": reports[name].nodes,
            "batches": reports[name].batches,
            "gathered MB": reports[name].gathered_bytes / 1e6,
        }
        for name in VARIANTS
    ]


def tables(options: argparse.Namespace) -> Tables:
    """Everything."""
    number: dict[str, int] = {}
    lines = (needed_folder() / "wikiner" / "dev.txt").read_text(encoding="utf-8").splitlines()[:64]
    sentences = [[number.setdefault(word, len(number)) for word in line.split()] for line in lines]
    rows = [
        row
        for make in (Tagger, LanguageModel)
        for hidden in options.hidden
        for row in measured(make, sentences, hidden, options.rounds)
    ]
    return {"Cells split around recurrences, 64 sentences": rows}


main = command(__doc__, tables, hidden=(64, 256))

if __name__ == "__main__":
    main()
