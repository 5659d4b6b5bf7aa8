"""Three models with their data: EdBatch's side and PyTorch's of each, and what each computes and moves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import edbatch as eb
from edbatch.data.lattices import random_lattices, read_lattices, sizes
from edbatch.data.random_trees import random_trees
from edbatch.data.tagged import random_tagged, read_tagged
from edbatch.data.trees import read_trees
from edbatch.data.vocabulary import Vocabulary
from edbatch.models import BiLSTMTagger, LatticeLSTM, TreeLSTM
from scripts.peers.lattice import LatticeByPosition, LatticePerSample, LatticeSample
from scripts.peers.peer import Peer
from scripts.peers.tagger import TaggedSample, TaggerByPosition, TaggerPacked, TaggerPerSample
from scripts.peers.trees import TreeByLevel, TreePerSample, TreeSample

LR = 1e-5  # so small that many steps on the same samples stay what training is


class Counts(NamedTuple):
    """What a forward run of a model costs at least, however it is batched.

    Attributes:
        flops: of its matrix products.
        bytes: products read their rows, and their matrix once per mini-batch, and write their results; element-wise
            code reads these and the states that it needs, and writes states.
    """

    flops: float
    bytes: float


@dataclass(frozen=True)
class Task:
    """A model and its data.

    Attributes:
        name: of the model.
        samples: what the network's `loss` takes of each.
        network: made from a collection and the size of its states.
        count: the costs of samples at a size of states.
        per_sample: how PyTorch does it one sample after the other.
        by_hand: how it does it in batches written by hand.
    """

    name: str
    samples: Sequence[Any]
    network: Callable[[eb.ParameterCollection, int], Any]
    count: Callable[[Sequence[Any], int], Counts]
    per_sample: type[Peer]
    by_hand: dict[str, type[Peer]]

    def mini_batches(self, size: int, n: int) -> list[list[Any]]:
        """`n` mini-batches, each of different samples; the same ones every time."""
        random = np.random.default_rng(size)
        some = min(size, len(self.samples))
        return [[self.samples[i] for i in random.choice(len(self.samples), some, replace=False)] for _ in range(n)]


class Own:
    """EdBatch's side: everything from samples on, in Python as a user writes it.

    Args:
        task: what to run.
        hidden: size of states.
        device: where.
        precision: of matrix products.
    """

    def __init__(self, task: Task, hidden: int, device: str, precision: str = "float32") -> None:
        self.device, self.precision = device, precision
        with eb.device(device):
            self.model = eb.ParameterCollection(seed=0)
            self.network = task.network(self.model, hidden)
            self.trainer = eb.SGD(self.model, lr=LR)

    def numbers(self) -> AbstractContextManager[Any]:
        """The precision in force; float32 is the default."""
        return nullcontext() if self.precision == "float32" else eb.options(precision=self.precision)

    def forward(self, samples: Sequence[Any]) -> eb.Graph:
        """Probabilities at every place, enqueued."""
        with eb.device(self.device), self.numbers():
            with eb.Graph() as graph:
                for sample in samples:
                    for h in self.network.hidden(*sample[:-1]):
                        self.network.probabilities(h)
            graph.run()
        return graph

    def step(self, samples: Sequence[Any]) -> eb.Graph:
        """Forward, backward, update, enqueued."""
        with eb.device(self.device), self.numbers():
            with eb.Graph() as graph:
                loss = eb.sum([self.network.loss(*sample) for sample in samples])
            loss.backward()
            self.trainer.update()
        return graph


class Tasks(dict[str, Task]):
    """By name; the data is read when a task is first asked for, or made up without a folder."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def __missing__(self, name: str) -> Task:
        found = self[name] = MODELS[name](self._folder)
        return found


def all_tasks(folder: Path | None) -> dict[str, Task]:
    """Of all models."""
    tasks = Tasks(folder)
    return {name: tasks[name] for name in MODELS}


def _trees(folder: Path | None) -> Task:
    found = read_trees(folder / "sst" / "train.txt") if folder else random_trees(2000, seed=0)
    trees = [tree.binarized() for tree in found]
    words = Vocabulary(word for tree in trees for word in tree.words if word is not None)
    samples = [
        TreeSample([None if word is None else words[word] for word in tree.words], tree.children, tree.labels)
        for tree in trees
    ]
    labels = 1 + max(max(tree.labels) for tree in trees)

    def count(samples: Sequence[TreeSample], d: int) -> Counts:
        nodes = sum(len(sample.words) for sample in samples)
        leaves = sum(word is not None for sample in samples for word in sample.words)
        products = [(leaves, d, 3 * d), (nodes - leaves, 2 * d, 5 * d), (nodes, d, labels)]
        return _counts(products, leaves * (3 + 2) * d + (nodes - leaves) * (5 + 2 + 2) * d)

    def network(model: eb.ParameterCollection, hidden: int) -> TreeLSTM:
        return TreeLSTM(model, len(words), labels, hidden)

    return Task("TreeLSTM", samples, network, count, TreePerSample, {"by level": TreeByLevel})


def _tagged(folder: Path | None) -> Task:
    found = read_tagged(folder / "wikiner" / "train.txt") if folder else random_tagged(2000, seed=0)
    words = Vocabulary(word for sentence in found for word in sentence.words)
    tags = {tag: number for number, tag in enumerate(sorted({tag for sentence in found for tag in sentence.tags}))}
    samples = [TaggedSample([words[word] for word in x.words], [tags[tag] for tag in x.tags]) for x in found]

    def count(samples: Sequence[TaggedSample], d: int) -> Counts:
        n = sum(len(sample.words) for sample in samples)
        runs = 4  # two ways, two layers
        return _counts([(n, d, 4 * d)] * 2 * runs + [(n, 2 * d, d), (n, d, len(tags))], n * runs * (8 + 1 + 2) * d)

    def network(model: eb.ParameterCollection, hidden: int) -> BiLSTMTagger:
        return BiLSTMTagger(model, len(words), len(tags), hidden)

    by_hand = {"packed nn.LSTM": TaggerPacked, "by position": TaggerByPosition}
    return Task("BiLSTM tagger", samples, network, count, TaggerPerSample, by_hand)


def _lattices(folder: Path | None) -> Task:
    found = read_lattices(folder / "lattice" / "train.txt") if folder else random_lattices(1000, seed=0)
    samples = [LatticeSample(lattice.arcs, lattice.tags) for lattice in found if len(lattice) > 1]
    characters, words, tags = sizes(found)

    def count(samples: Sequence[LatticeSample], d: int) -> Counts:
        nodes = sum(len(sample.tags) - 1 for sample in samples)
        arcs = sum(len(ends) for sample in samples for ends in sample.arcs)
        of_characters = sum(
            source == node - 1 for sample in samples for node, ends in enumerate(sample.arcs) for source, _ in ends
        )
        products = [(n, d, 4 * d) for n in (of_characters, arcs - of_characters) for _ in range(2)]
        # Where one arc ends its state is the node's; where several do they are read and the sum is written.
        sums = sum(2 * d * (1 + len(ends)) for sample in samples for ends in sample.arcs if len(ends) > 1)
        return _counts([*products, (nodes, d, tags)], arcs * (8 + 1 + 2) * d + sums)

    def network(model: eb.ParameterCollection, hidden: int) -> LatticeLSTM:
        return LatticeLSTM(model, characters, words, tags, hidden, average=False)  # as its peers

    return Task("LatticeLSTM", samples, network, count, LatticePerSample, {"by position": LatticeByPosition})


MODELS = {"TreeLSTM": _trees, "BiLSTM tagger": _tagged, "LatticeLSTM": _lattices}


def _counts(products: list[tuple[int, int, int]], element_wise: int) -> Counts:
    """Of products (rows, inputs, outputs), and entries that element-wise code reads and writes."""
    flops = sum(2 * rows * inputs * outputs for rows, inputs, outputs in products)
    entries = sum(rows * (inputs + outputs) + inputs * outputs for rows, inputs, outputs in products)
    return Counts(flops, 4 * (entries + element_wise))
