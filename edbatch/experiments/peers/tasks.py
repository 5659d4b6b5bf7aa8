"""Three models with their data: EdBatch's side and PyTorch's of each, and what each computes and moves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

import edbatch as eb
from edbatch.data.lattices import Lattice
from edbatch.data.tagged import TaggedSentence
from edbatch.data.trees import Tree
from edbatch.experiments.peers.lattice import LatticeByPosition, LatticePerSample, LatticeSample
from edbatch.experiments.peers.peer import Peer
from edbatch.experiments.peers.tagger import TaggedSample, TaggerByPosition, TaggerPacked, TaggerPerSample
from edbatch.experiments.peers.trees import TreeByLevel, TreePerSample, TreeSample
from edbatch.models.workloads import WORKLOADS

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


class Task:
    """A model and its data.

    Args:
        folder: with the real data; None: it is made up.

    Attributes:
        name: of the model.
        samples: what the network's `loss` takes of each.
        per_sample: how PyTorch does it one sample after the other.
        by_hand: how it does it in batches written by hand.
    """

    name: ClassVar[str]
    workload: ClassVar[str]  # of `edbatch.models.workloads`
    made_up: ClassVar[int]  # samples
    per_sample: ClassVar[type[Peer]]
    by_hand: ClassVar[dict[str, type[Peer]]]
    options: ClassVar[dict[str, Any]] = {}  # of the network

    def __init__(self, folder: Path | None) -> None:
        self._workload = of = WORKLOADS[self.workload]
        found = of.read(*(folder / path for path in of.folder)) if folder else of.generate(self.made_up, 0)
        inputs, self._sizes, self.labels = of.number(found)
        samples = [self.sample(x, read) for x, read in zip(inputs, found, strict=True)]
        self.samples = [sample for sample in samples if sample is not None]

    def sample(self, inputs: tuple[Any, ...], read: Any) -> Any:
        """A sample of what the model's `hidden` takes, and of what was read; None if it is of no use."""
        raise NotImplementedError

    def products(self, samples: Sequence[Any], d: int) -> tuple[list[tuple[int, int, int]], int]:
        """Of a forward run: matrix products (rows, inputs, outputs), and entries that element-wise code accesses."""
        raise NotImplementedError

    def network(self, model: eb.ParameterCollection, hidden: int) -> Any:
        """The model, with states of a size."""
        return self._workload.network(model, *self._sizes, hidden, **self.options)

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

    name, workload, made_up = "TreeLSTM", "tree-lstm", 2000
    per_sample, by_hand = TreePerSample, {"by level": TreeByLevel}

    def sample(self, inputs: tuple[Any, ...], read: Tree) -> TreeSample:
        """Words, children, labels."""
        words, children = inputs
        return TreeSample(words, children, read.labels)

    def products(self, samples: Sequence[TreeSample], d: int) -> tuple[list[tuple[int, int, int]], int]:
        """Gates of leaves and of inner nodes, and scores."""
        nodes = sum(len(sample.words) for sample in samples)
        leaves = sum(word is not None for sample in samples for word in sample.words)
        products = [(leaves, d, 3 * d), (nodes - leaves, 2 * d, 5 * d), (nodes, d, len(self.labels))]
        return products, leaves * (3 + 2) * d + (nodes - leaves) * (5 + 2 + 2) * d


class Sentences(Task):
    """BiLSTM tagger."""

    name, workload, made_up = "BiLSTM tagger", "tagger", 2000
    per_sample, by_hand = TaggerPerSample, {"packed nn.LSTM": TaggerPacked, "by position": TaggerByPosition}

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
    per_sample, by_hand = LatticePerSample, {"by position": LatticeByPosition}
    options: ClassVar = {"average": False}  # as its peers

    def sample(self, inputs: tuple[Any, ...], read: Lattice) -> LatticeSample | None:
        """Arcs and tags, of a lattice with a character."""
        (arcs,) = inputs
        return LatticeSample(arcs, read.tags) if len(read) > 1 else None

    def products(self, samples: Sequence[LatticeSample], d: int) -> tuple[list[tuple[int, int, int]], int]:
        """Gates of characters and of words, and scores."""
        nodes = sum(len(sample.tags) - 1 for sample in samples)
        arcs = [source == node - 1 for x in samples for node, ends in enumerate(x.arcs) for source, _ in ends]
        characters = sum(arcs)
        products = [(n, d, 4 * d) for n in (characters, len(arcs) - characters) for _ in range(2)]
        # Where one arc ends its state is the node's; where several do they are read and the sum is written.
        sums = sum(2 * d * (1 + len(ends)) for sample in samples for ends in sample.arcs if len(ends) > 1)
        return [*products, (nodes, d, len(self.labels))], len(arcs) * (8 + 1 + 2) * d + sums


MODELS = {kind.name: kind for kind in (Trees, Sentences, Lattices)}


class Own:
    """EdBatch's side: everything from samples on, in Python as a user writes it.

    Args:
        task: what to run.
        hidden: size of states.
        device: where.
        precision: of matrix products.
        optimizer: made from the model.
        replays: whether the losses of samples are recorded once, and replayed.
    """

    def __init__(
        self, task: Task, hidden: int, device: str = "cpu", precision: str = "float32",
        optimizer: Callable[[eb.ParameterCollection], eb.training.Trainer] = lambda model: eb.SGD(model, lr=LR),
        replays: bool = False,
    ) -> None:  # fmt: skip
        self.device, self.precision = device, precision
        with eb.device(device):
            self.model = eb.ParameterCollection(seed=0)
            self.network = task.network(self.model, hidden)
            self.trainer = optimizer(self.model)
        self._loss_of = eb.replay(_loss_of) if replays else _loss_of

    def numbers(self) -> AbstractContextManager[Any]:
        """The precision in force; float32 is the default."""
        return nullcontext() if self.precision == "float32" else eb.options(precision=self.precision)

    def forward(self, samples: Sequence[Any]) -> eb.Graph:
        """Probabilities at every place, enqueued."""
        with eb.device(self.device), self.numbers():
            graph = self.recorded(samples)
            graph.run()
        return graph

    def recorded(self, samples: Sequence[Any]) -> eb.Graph:
        """Probabilities at every place; not run yet."""
        with eb.Graph() as graph:
            for sample in samples:
                for h in self.network.hidden(*sample[:-1]):
                    self.network.probabilities(h)
        return graph

    def loss(self, samples: Sequence[Any]) -> eb.Expression:
        """The sum over a mini-batch; not run yet."""
        with eb.Graph():
            return eb.sum([self._loss_of(self.network, sample) for sample in samples])

    def step(self, samples: Sequence[Any]) -> eb.Graph:
        """Forward, backward, update, enqueued."""
        with eb.device(self.device), self.numbers():
            loss = self.loss(samples)
            loss.backward()
            self.trainer.update()
        assert isinstance(loss.graph, eb.Graph)
        return loss.graph


def _loss_of(network: Any, sample: tuple[Any, ...]) -> eb.Expression:
    found: eb.Expression = network.loss(*sample)
    return found
