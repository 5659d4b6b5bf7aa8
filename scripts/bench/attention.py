"""Attention over lists of many lengths, against one length and against PyTorch's padded and masked attention.

    python -m scripts.bench.attention [--json] [--rounds 9] [--hidden 256] [--sentences 32]

Sentences have 1, 2, 3 ... words. "attention alone": every step attends over the sentence, and what comes out is the
next query. "encoder and decoder": an LSTM reads the sentence; another writes as many words, and attends at every step,
whose input is what the step before has attended to. PyTorch has all sentences as long as the longest, and masks.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.experiments.measure import STAGES, interleaved
from edbatch.models import LSTM
from scripts.bench.report import Tables, command, figure


class Alone:
    """Attention, step after step.

    Args:
        lengths: of the sentences; the n-th has as many steps as words.
        hidden: size of all vectors.
    """

    def __init__(self, lengths: list[int], hidden: int) -> None:
        random = np.random.default_rng(0)
        self.lengths, self.hidden = lengths, hidden
        self.words = [random.normal(size=(n, hidden)).astype(np.float32) for n in lengths]
        model = eb.ParameterCollection()
        self.first = model.add_parameters(hidden, init=0.1)

    def sentence(self, words: np.ndarray) -> list[eb.Expression]:
        """What comes out of each step."""
        found = []
        keys, query = eb.ExpressionList(map(eb.input, words)), eb.parameter(self.first)
        for _ in words:
            query = eb.attention(query, keys, keys)
            found.append(query)
        return found

    def graph(self) -> tuple[eb.Graph, eb.Expression]:
        """All sentences, and the sum of what comes out."""
        with eb.Graph() as graph:
            found = [y for words in self.words for y in self.sentence(words)]
            return graph, eb.sum(eb.sum(found))

    def forward(self) -> dict[str, float]:
        """Values; seconds by stage."""
        graph, loss = self.graph()
        loss.value()
        return graph.report().seconds

    def train(self) -> dict[str, float]:
        """Gradients; seconds by stage."""
        graph, loss = self.graph()
        loss.backward()
        loss.value()
        return graph.report().seconds

    def batches(self) -> int:
        """Of a mini-batch."""
        graph, loss = self.graph()
        loss.value()
        return graph.report().batches


class EncoderDecoder(Alone):
    """Two LSTMs; arguments as of `Alone`."""

    def __init__(self, lengths: list[int], hidden: int) -> None:
        super().__init__(lengths, hidden)
        model = eb.ParameterCollection(seed=0)
        self.encoder, self.decoder = LSTM(model, hidden, hidden), LSTM(model, hidden, hidden)

    def sentence(self, words: np.ndarray) -> list[eb.Expression]:
        """What the steps of the decoder have attended to."""
        found = []
        keys = eb.ExpressionList(self.encoder.initial_state().transduce([eb.input(word) for word in words]))
        context = keys[-1]
        h, c = self.decoder.initial_state().vectors
        for _ in words:
            h, c = self.decoder.step(context, h, c)
            context = eb.attention(h, keys, keys)
            found.append(context)
        return found


class Padded:
    """The same in PyTorch: [sentences, longest, hidden], and what is no word masked."""

    def __init__(self, ours: Alone) -> None:
        import torch

        self.torch, self.lengths, hidden = torch, ours.lengths, ours.hidden
        torch.set_num_threads(1)
        self.longest, n = max(ours.lengths), len(ours.lengths)
        self.words = torch.zeros(n, self.longest, hidden)
        for at, words in enumerate(ours.words):
            self.words[at, : len(words)] = torch.from_numpy(words)
        self.mask = (torch.arange(self.longest)[None] < torch.tensor(ours.lengths)[:, None])[:, None]
        self.first = torch.full((hidden,), 0.1, requires_grad=True)
        self.lstm: list[Any] = []
        if isinstance(ours, EncoderDecoder):
            self.lstm = [torch.nn.LSTM(hidden, hidden, batch_first=True), torch.nn.LSTMCell(hidden, hidden)]
            for layer, own in zip(self.lstm, (ours.encoder, ours.decoder), strict=True):
                arrays = [own.W.value(), own.U.value(), own.b.value(), np.zeros(4 * hidden, np.float32)]
                with torch.no_grad():
                    for theirs, array in zip(layer.state_dict().values(), arrays, strict=True):
                        i, f, o, u = np.split(array, 4)
                        theirs.copy_(torch.from_numpy(np.concatenate([i, f, u, o])))

    def attend(self, query: Any, keys: Any) -> Any:
        """By PyTorch's own function."""
        attention = self.torch.nn.functional.scaled_dot_product_attention
        return attention(query[:, None], keys, keys, attn_mask=self.mask)[:, 0]

    def loss(self) -> Any:
        """The sum of what comes out of all steps that there are."""
        torch, found, n = self.torch, [], len(self.lengths)
        keys = self.lstm[0](self.words)[0] if self.lstm else self.words
        query = self.first.expand(n, -1)
        state = (torch.zeros(n, keys.shape[2]), torch.zeros(n, keys.shape[2]))
        context = keys[torch.arange(n), torch.tensor(self.lengths) - 1]
        for _ in range(self.longest):
            if self.lstm:
                state = self.lstm[1](context, state)
                query = state[0]
            query = context = self.attend(query, keys)
            found.append(query)
        return (torch.stack(found, 1) * self.mask[:, 0, :, None]).sum()

    def value(self) -> float:
        """The sum."""
        with self.torch.no_grad():
            return float(self.loss())

    def forward(self) -> None:
        """Values alone."""
        self.value()

    def train(self) -> None:
        """Gradients."""
        self.loss().backward()


def measure(title: str, kind: Callable[..., Alone], given: argparse.Namespace) -> Tables:
    """A model's times, and its figures beside those that are asked for."""
    many, one = [*range(1, given.sentences + 1)], [given.sentences] * given.sentences
    ours = kind(many, given.hidden)
    theirs = Padded(ours)
    close = abs(theirs.value() - float(ours.graph()[1])) <= 1e-3 * (1 + abs(theirs.value()))
    runs = interleaved(
        {
            "forward": ours.forward,
            "PyTorch forward": theirs.forward,
            "train": ours.train,
            "PyTorch train": theirs.train,
        },
        given.rounds,
        warm_ups=2,
    )
    rows = [
        {"": name, **run.ms(), **{stage: 1e3 * run.medians().get(stage, 0.0) for stage in (*STAGES, "backward")}}
        for name, run in runs.items()
    ]
    figures = [
        figure(f"{title}: the same sum as PyTorch's", str(close), "True"),
        figure(f"{title}: batches, of {given.sentences} lengths", ours.batches(), kind(one, given.hidden).batches()),
    ]
    for what in ("forward", "train"):
        ratio = runs[what].seconds / runs[f"PyTorch {what}"].seconds
        figures.append(figure(f"{title}: {what}, times of PyTorch's", ratio, "<= 1.3"))
    return {f"Attention: {title}, milliseconds": rows, f"Attention: {title}": figures}


def recording(given: argparse.Namespace, calls: int = 500) -> Tables:
    """What recording a call costs, over a list as it is and one that was checked before."""

    def repeated(call: Callable[..., Any], *operands: Any) -> Callable[[], None]:
        def run() -> None:
            for _ in range(calls):
                call(*operands)

        return run

    rows = []
    with eb.Graph():
        query = eb.ones(given.hidden)
        for n in (1, given.sentences, 4 * given.sentences):
            keys = [eb.input(np.zeros(given.hidden)) for _ in range(n)]
            checked = eb.ExpressionList(keys)
            runs = interleaved(
                {
                    "ExpressionList": repeated(eb.attention, query, checked, checked),
                    "list": repeated(eb.attention, query, keys, keys),
                    "tanh": repeated(eb.tanh, query),
                },
                given.rounds,
            )
            rows.append({"keys": n, **{f"{name}, us": 1e6 * run.seconds / calls for name, run in runs.items()}})
    return {"Attention: recording a call": rows}


def tables(given: argparse.Namespace) -> Tables:
    """Everything that is measured."""
    found = measure("attention alone", Alone, given) | measure("encoder and decoder", EncoderDecoder, given)
    return found | recording(given)


main = command(
    __doc__,
    tables,
    hidden={"type": int, "default": 256, "help": "size of all vectors (default: 256)"},
    sentences={"type": int, "default": 32, "help": "how many there are, the longest of as many words (default: 32)"},
)

if __name__ == "__main__":
    main()
