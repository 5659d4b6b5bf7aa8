"""Programs over values: together beside one by one, batches over their bound, greedy decoding beside PyTorch.

    python -m scripts.bench.programs [--json] [--rounds 7] [--samples 32] [--hidden 64 256]

Sentences and weights are made up. "One by one" is `eb.run(programs, limit=1)`. The bound is over the finished graph:
what a program had waited for is before what it recorded next, so that no way to run the programs has fewer batches.
PyTorch decodes padded and masked: LSTMs over all sentences, as long as the longest, one step for all at a time.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Coroutine
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.data.dependencies import random_dependencies
from edbatch.data.vocabulary import Vocabulary
from edbatch.experiments.measure import interleaved
from edbatch.models import (
    AttentionEncoderDecoder,
    EncoderDecoder,
    MixtureOfExperts,
    TransitionParser,
    TreeGenerator,
    generation,
)
from scripts.bench.report import Tables, command, figure
from scripts.bench.waiting import Watched

Programs = Callable[[int], Coroutine[Any, Any, Any]]  # from the number of a sample
WORDS, NEVER = 2000, -1  # size of the vocabularies; the end that no sentence reaches before its length


def source(k: int) -> list[int]:
    """A sentence of 5 to 24 words."""
    random = np.random.default_rng(k)
    return [int(word) for word in random.integers(3, WORDS, random.integers(5, 25))]


def parser(hidden: int) -> Programs:
    """Parses made-up sentences."""
    sentences = random_dependencies(200, seed=0)
    words = Vocabulary(word for sentence in sentences for word in sentence.words)
    network = TransitionParser(eb.ParameterCollection(seed=0), len(words), 12, hidden)
    return lambda k: network.parse([words[word] for word in sentences[k % 200].words])


def decoder(say: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[[int], Programs]:
    """Says as many words as the source has."""

    def made(hidden: int) -> Programs:
        network = AttentionEncoderDecoder(eb.ParameterCollection(seed=0), WORDS, WORDS, hidden)
        network.end = NEVER
        return lambda k: say(network, source(k), k)

    return made


def trees(hidden: int) -> Programs:
    """Grows trees of random shapes."""
    network = TreeGenerator(eb.ParameterCollection(seed=0), 4, 5, hidden)
    network.b_out.set_value([0.0, 0.0, 0.0, 0.0, np.log(4)])  # half of the nodes have children
    return lambda k: network.grow(k % 5, 9, np.random.default_rng(k))


def experts(hidden: int) -> Programs:
    """Eight layers, each of two of eight experts."""
    model = eb.ParameterCollection(seed=0)
    layers = [MixtureOfExperts(model, 8, hidden, hidden, 2) for _ in range(8)]

    async def program(k: int) -> Any:
        x = eb.input(np.random.default_rng(k).normal(size=hidden))
        for layer in layers:
            x = await layer.mix(x)
        return await x

    return program


MODELS: dict[str, Callable[[int], Programs]] = {
    "parser": parser,
    "attention, greedy": decoder(lambda network, words, _: generation.greedy(network, words, len(words))),
    "attention, sampled": decoder(
        lambda network, words, k: generation.sampled(network, words, np.random.default_rng(k), len(words))
    ),
    "attention, beam of 4": decoder(lambda network, words, _: generation.beam(network, words, 4, len(words))),
    "trees": trees,
    "experts": experts,
}


def together(name: str, hidden: int, given: argparse.Namespace) -> dict[str, Any]:
    """A model's samples together and one by one."""
    program = MODELS[name](hidden)
    samples = range(given.samples)
    runs = interleaved(
        {
            "together": lambda: eb.run(map(program, samples)),
            "one by one": lambda: eb.run(map(program, samples), limit=1),
        },
        given.rounds,
    )
    with eb.Graph(policy="sufficient") as graph:
        watched = Watched(graph)
        eb.run([watched.program(program(k)) for k in samples])
    report, bound = graph.report(), watched.bound()
    return {
        "model": name,
        **runs["together"].ms(),
        **runs["one by one"].ms(name="one by one, ms"),
        "times as fast": runs["one by one"].seconds / runs["together"].seconds,
        "rounds": report.rounds,
        "batches": report.batches,
        "bound": bound,
        "batches / bound": report.batches / bound,
    }


def models(hidden: int, given: argparse.Namespace) -> Tables:
    """All models, and what is asked of them."""
    rows = [together(name, hidden, given) for name in MODELS]
    fast = [figure(f"{row['model']}: times as fast", row["times as fast"], ">= 8") for row in rows]
    near = [figure(f"{row['model']}: batches / bound", row["batches / bound"], "<= 1.2") for row in rows]
    return {
        f"{given.samples} samples together, hidden {hidden}": rows,
        f"Figures asked for: together, hidden {hidden}": fast + near,
    }


class Padded:
    """The greedy decoder in PyTorch: all sentences at once, as long as the longest."""

    def __init__(self, network: EncoderDecoder, sources: list[list[int]]) -> None:
        import torch

        self.torch, self.network = torch, network
        torch.set_num_threads(1)
        self.lengths = torch.tensor([len(words) for words in sources])
        self.sources = torch.zeros(len(sources), int(self.lengths.max()), dtype=torch.int64)
        for at, words in enumerate(sources):
            self.sources[at, : len(words)] = torch.tensor(words)
        dim = network.W_out.shape[1]
        self.embed = [torch.tensor(table.value()) for table in (network.embed_source, network.embed_target)]
        self.cells = [torch.nn.LSTMCell(dim, dim), torch.nn.LSTMCell(dim, dim)]
        for cell, own in zip(self.cells, (network.encoder, network.decoder), strict=True):
            arrays = [own.W.value(), own.U.value(), own.b.value(), np.zeros(4 * dim, np.float32)]
            with torch.no_grad():
                for theirs, array in zip(cell.state_dict().values(), arrays, strict=True):
                    i, f, o, u = np.split(array, 4)
                    theirs.copy_(torch.from_numpy(np.concatenate([i, f, u, o])))
        self.W_out, self.b_out = torch.tensor(network.W_out.value()), torch.tensor(network.b_out.value())

    def decode(self) -> list[list[int]]:
        """The words of every sentence, as many as its source has."""
        torch, n = self.torch, len(self.lengths)
        with torch.no_grad():
            h = c = torch.zeros(n, self.W_out.shape[1])
            for at in range(self.sources.shape[1]):
                new_h, new_c = self.cells[0](self.embed[0][self.sources[:, at]], (h, c))
                there = (at < self.lengths)[:, None]
                h, c = torch.where(there, new_h, h), torch.where(there, new_c, c)
            words, found = torch.full((n,), self.network.start), []
            for _ in range(int(self.lengths.max())):
                h, c = self.cells[1](self.embed[1][words], (h, c))
                words = torch.addmm(self.b_out, h, self.W_out.T).argmax(1)
                found.append(words)
        rows = torch.stack(found, 1).tolist()
        return [row[:length] for row, length in zip(rows, self.lengths.tolist(), strict=True)]


def greedy(given: argparse.Namespace) -> Tables:
    """Greedy decoding at `--decoder` size of states, 64 sentences, without attention."""
    network = EncoderDecoder(eb.ParameterCollection(seed=0), WORDS, WORDS, given.decoder)
    network.end = NEVER
    sources = [source(k) for k in range(64)]
    theirs = Padded(network, sources)

    def ours() -> list[list[int]]:
        return eb.run([generation.greedy(network, words, len(words)) for words in sources])

    same = np.mean([a == b for x, y in zip(ours(), theirs.decode(), strict=True) for a, b in zip(x, y, strict=True)])
    runs = interleaved({"EdBatch": ours, "PyTorch": theirs.decode}, given.rounds, warm_ups=2)
    figures = [
        figure("PyTorch's time over EdBatch's", runs["PyTorch"].seconds / runs["EdBatch"].seconds, ">= 1.2"),
        figure("the same words", float(same), ">= 0.99"),
    ]
    rows = [{"": name, **run.ms()} for name, run in runs.items()]
    return {f"Greedy decoding, 64 sentences, hidden {given.decoder}": rows, "Figures asked for: decoding": figures}


def tables(given: argparse.Namespace) -> Tables:
    """Everything that is measured."""
    found: Tables = {}
    for hidden in given.hidden:
        found |= models(hidden, given)
    return found | greedy(given)


main = command(
    __doc__,
    tables,
    rounds=7,
    samples={"type": int, "default": 32, "help": "that run together (default: 32)"},
    hidden=(64, 256),
    decoder={"type": int, "default": 256, "help": "size of the decoder's beside PyTorch (default: 256)"},
)

if __name__ == "__main__":
    main()
