"""The nine workloads of ED-Batch with their samples; of three of them, what they compute and move at least."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

import edbatch as eb
from edbatch.data.lattices import Lattice
from edbatch.data.parallel import SentencePair
from edbatch.data.tagged import TaggedSentence
from edbatch.data.trees import Tree
from edbatch.experiments.peers.samples import LatticeSample, PairSample, TaggedSample, TreeSample
from edbatch.models.workloads import WORKLOADS

END = 2  # the word with which `edbatch.models.EncoderDecoder` ends every sentence


class Counts(NamedTuple):
    """What a forward run of a model costs at least, however it is batched.

    Attributes:
        flops: of its matrix products.
        bytes: products read their rows, and their matrix once per mini-batch, and write their results; element-wise
            code reads these and the states that it needs, and writes states.
    """

    flops: float
    bytes: float


class Task:
    """A model and its data.

    Args:
        folder: with the real data; None: it is made up.
        most: samples, the first that are of use; None: all there are.

    Attributes:
        name: of the model.
        workload: of `edbatch.models.workloads`.
        samples: what the network's `hidden` takes of each, and last what belongs to its places.
    """

    name: ClassVar[str]
    workload: ClassVar[str]
    made_up: ClassVar[int] = 2000  # samples

    def __init__(self, folder: Path | None, most: int | None = None) -> None:
        self._workload = of = WORKLOADS[self.workload]
        if folder and of.stream:
            given: Iterable[Any] = of.stream(*(folder / path for path in of.folder))
        else:
            given = of.generate(most or self.made_up, 0)
        found = list(islice(filter(self.is_of_use, given), most))
        inputs, self._sizes, self.labels = of.number(found)
        self.samples = [self.sample(x, read) for x, read in zip(inputs, found, strict=True)]

    @staticmethod
    def is_of_use(read: Any) -> bool:
        """Whether a sample that was read has a place."""
        return True

    def sample(self, inputs: tuple[Any, ...], read: Any) -> Any:
        """A sample of what the model's `hidden` takes, and of what was read."""
        raise NotImplementedError

    @staticmethod
    def loss(network: Any, sample: tuple[Any, ...]) -> eb.Expression:
        """The sum over the places of a sample."""
        found: eb.Expression = network.cross_entropies(network.hidden(*sample[:-1]), sample[-1])
        return found

    @staticmethod
    def probabilities(network: Any, sample: tuple[Any, ...]) -> list[eb.Expression]:
        """Of all labels, at every place of a sample."""
        of = network.probabilities
        return [of(h) for h in network.hidden(*sample[:-1])]

    def products(self, samples: Sequence[Any], d: int) -> tuple[list[tuple[int, int, int]], int]:
        """Of a forward run: matrix products (rows, inputs, outputs), and entries that element-wise code accesses."""
        raise NotImplementedError

    def network(self, model: eb.ParameterCollection, hidden: int) -> Any:
        """The model, with states of a size."""
        return self._workload.network(model, *self._sizes, hidden)

    def count(self, samples: Sequence[Any], d: int) -> Counts:
        """The costs of samples at a size of states."""
        products, element_wise = self.products(samples, d)
        flops = sum(2 * rows * inputs * outputs for rows, inputs, outputs in products)
        entries = sum(rows * (inputs + outputs) + inputs * outputs for rows, inputs, outputs in products)
        return Counts(flops, 4 * (entries + element_wise))

    def mini_batches(self, size: int, n: int) -> list[list[Any]]:
        """`n` mini-batches, each of different samples; the same ones every time."""
        random = np.random.default_rng(size)
        some = min(size, len(self.samples))
        return [[self.samples[i] for i in random.choice(len(self.samples), some, replace=False)] for _ in range(n)]


class Trees(Task):
    """TreeLSTM."""

    name, workload = "TreeLSTM", "tree-lstm"

    def sample(self, inputs: tuple[Any, ...], read: Tree) -> TreeSample:
        """Words, children, labels."""
        words, children = inputs
        return TreeSample(words, children, [self.labels.index(label) for label in read.labels])

    def products(self, samples: Sequence[TreeSample], d: int) -> tuple[list[tuple[int, int, int]], int]:
        """Gates of leaves and of inner nodes, and scores."""
        nodes = sum(len(sample.words) for sample in samples)
        leaves = sum(word is not None for sample in samples for word in sample.words)
        products = [(leaves, d, 3 * d), (nodes - leaves, 2 * d, 5 * d), (nodes, d, len(self.labels))]
        return products, leaves * (3 + 2) * d + (nodes - leaves) * (5 + 2 + 2) * d


class Sentences(Task):
    """BiLSTM tagger."""

    name, workload = "BiLSTM tagger", "tagger"

    def sample(self, inputs: tuple[Any, ...], read: TaggedSentence) -> TaggedSample:
        """Words and tags."""
        (words,) = inputs
        return TaggedSample(words, [self.labels.index(tag) for tag in read.tags])

    def products(self, samples: Sequence[TaggedSample], d: int) -> tuple[list[tuple[int, int, int]], int]:
        """Gates of two ways and two layers, the perceptron, and scores."""
        n = sum(len(sample.words) for sample in samples)
        runs = 4  # two ways, two layers
        return [(n, d, 4 * d)] * 2 * runs + [(n, 2 * d, d), (n, d, len(self.labels))], n * runs * (8 + 1 + 2) * d


class Lattices(Task):
    """LatticeLSTM."""

    name, workload, made_up = "LatticeLSTM", "lattice-lstm", 1000

    @staticmethod
    def is_of_use(read: Lattice) -> bool:
        """Whether it has a character."""
        return len(read) > 1

    def sample(self, inputs: tuple[Any, ...], read: Lattice) -> LatticeSample:
        """Arcs and tags."""
        (arcs,) = inputs
        return LatticeSample(arcs, read.tags)

    @staticmethod
    def loss(network: Any, sample: tuple[Any, ...]) -> eb.Expression:
        """The first node's tag means nothing."""
        found: eb.Expression = network.loss(*sample)
        return found

    def products(self, samples: Sequence[LatticeSample], d: int) -> tuple[list[tuple[int, int, int]], int]:
        """Gates of characters and of words, and scores."""
        nodes = sum(len(sample.tags) - 1 for sample in samples)
        arcs = [source == node - 1 for x in samples for node, ends in enumerate(x.arcs) for source, _ in ends]
        characters = sum(arcs)
        products = [(n, d, 4 * d) for n in (characters, len(arcs) - characters) for _ in range(2)]
        # Where one arc ends its state is the node's; where several do they are read and the sum is written.
        sums = sum(2 * d * (1 + len(ends)) for sample in samples for ends in sample.arcs if len(ends) > 1)
        return [*products, (nodes, d, len(self.labels))], len(arcs) * (8 + 1 + 2) * d + sums


class TreeGRUs(Trees):
    """TreeGRU."""

    name, workload = "TreeGRU", "tree-gru"


class MatrixVectorTrees(Trees):
    """MV-RNN."""

    name, workload = "MV-RNN", "mv-rnn"


class TwoTypes(Trees):
    """TreeLSTM-2Type."""

    name, workload = "TreeLSTM-2Type", "tree-lstm-2type"


class SpelledSentences(Sentences):
    """BiLSTM tagger that spells rare words."""

    name, workload = "BiLSTM tagger with characters", "tagger-characters"


class GRULattices(Lattices):
    """LatticeGRU."""

    name, workload = "LatticeGRU", "lattice-gru"


class Pairs(Task):
    """LSTM-NMT."""

    name, workload = "LSTM-NMT", "encoder-decoder"

    def sample(self, inputs: tuple[Any, ...], read: SentencePair) -> PairSample:
        """Source, target, and what is said: the target and its end."""
        source, target = inputs
        return PairSample(source, target, [*target, END])


KINDS = (Trees, TreeGRUs, MatrixVectorTrees, TwoTypes, Sentences, SpelledSentences, Lattices, GRULattices, Pairs)
TASKS = {kind.workload: kind for kind in KINDS}
MODELS = {kind.name: kind for kind in (Trees, Sentences, Lattices)}  # what they cost is counted
