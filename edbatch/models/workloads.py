"""Models with the data they read, by name: what `edbatch run` and the benchmarks run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import edbatch as eb
from edbatch.data.lattices import Lattice, sizes, stream_lattices
from edbatch.data.parallel import SentencePair, random_parallel, stream_parallel
from edbatch.data.random_lattices import random_lattices
from edbatch.data.random_trees import random_trees
from edbatch.data.stream import Stream
from edbatch.data.tagged import TaggedSentence, random_tagged, stream_tagged
from edbatch.data.trees import Tree, stream_trees
from edbatch.data.vocabulary import Vocabulary
from edbatch.models.encoder_decoder import EncoderDecoder
from edbatch.models.lattice import LatticeGRU, LatticeLSTM
from edbatch.models.mvrnn import MVRNN
from edbatch.models.tagger import BiLSTMTagger
from edbatch.models.tree_lstm import TreeLSTM

RARE = 5  # a word that occurs less often is read by its characters


class Numbered(NamedTuple):
    """Samples as a model takes them.

    Attributes:
        samples: per sample what the model's `hidden` takes, words as numbers.
        sizes: of what the model has tables for, in the order of its arguments.
        labels: what the entries of its probabilities stand for.
    """

    samples: list[tuple[Any, ...]]
    sizes: tuple[int, ...]
    labels: list[Any]


@dataclass(frozen=True)
class Workload:
    """A model and its data.

    Attributes:
        noun: what a sample is called.
        place: what each of its probabilities belongs to.
        files: what its files hold, by position.
        folder: where they are in the folder that EDBATCH_DATA names.
        stream: samples from files, one at a time; `skip_bad` skips malformed ones.
        generate: made-up samples, from their number and a seed.
        number: what the model takes of samples, see `Numbered`.
        network: makes the model, from a collection, sizes and the size of its states.
        root: whether only the label of the last place is predicted of a sample.

    Example:
        >>> import edbatch as eb
        >>> workload = WORKLOADS["lattice-lstm"]
        >>> samples, sizes, labels = workload.number(workload.generate(3, seed=0))
        >>> network = workload.network(eb.ParameterCollection(seed=0), *sizes, dim=4)
        >>> with eb.Graph() as graph:
        ...     outputs = [p for sample in samples for p in workload.probabilities(network, sample)]
        >>> outputs[0].shape == (len(labels),)
        True
    """

    noun: str
    place: str
    files: tuple[str, ...]
    folder: tuple[str, ...]
    stream: Callable[..., Stream[Any]]
    generate: Callable[[int, int], list[Any]]
    number: Callable[[list[Any]], Numbered]
    network: Callable[..., Any]
    root: bool = False

    def read(self, *paths: Any) -> list[Any]:
        """All samples of files."""
        return self.stream(*paths).take()

    @staticmethod
    def probabilities(network: Any, sample: tuple[Any, ...]) -> list[eb.Expression]:
        """Of all labels, at every place of a sample."""
        return [network.probabilities(h) for h in network.hidden(*sample)]


def _binary_trees(n: int, seed: int) -> list[Tree]:
    return [tree.binarized() for tree in random_trees(n, seed)]


def _number_trees(trees: list[Tree]) -> Numbered:
    words = Vocabulary(word for tree in trees for word in tree.words if word is not None)
    labels = sorted({label for tree in trees for label in tree.labels})
    samples = [([None if word is None else words[word] for word in tree.words], tree.children) for tree in trees]
    return Numbered(samples, (len(words), len(labels)), labels)


def _number_tagged(sentences: list[TaggedSentence]) -> Numbered:
    words = Vocabulary(word for sentence in sentences for word in sentence.words)
    tags = sorted({tag for sentence in sentences for tag in sentence.tags})
    return Numbered([([words[word] for word in x.words],) for x in sentences], (len(words), len(tags)), tags)


def _number_spelled(sentences: list[TaggedSentence]) -> Numbered:
    """Like `_number_tagged`, rare words as characters."""
    words = Vocabulary((word for sentence in sentences for word in sentence.words), at_least=RARE)
    letters = Vocabulary(letter for sentence in sentences for word in sentence.words for letter in word)
    tags = sorted({tag for sentence in sentences for tag in sentence.tags})
    samples = [
        ([words[word] if word in words else [letters[letter] for letter in word] for word in sentence.words],)
        for sentence in sentences
    ]
    return Numbered(samples, (len(words), len(tags), len(letters)), tags)


def _number_lattices(lattices: list[Lattice]) -> Numbered:
    found = sizes(lattices)
    return Numbered([(lattice.arcs,) for lattice in lattices], found, list(range(found.tags)))


def _number_parallel(pairs: list[SentencePair]) -> Numbered:
    source = Vocabulary(word for pair in pairs for word in pair.source)
    known = list(dict.fromkeys(["<s>", "</s>"] + [word for pair in pairs for word in pair.target]))
    target = Vocabulary(known)
    samples = [([source[word] for word in pair.source], [target[word] for word in pair.target]) for pair in pairs]
    return Numbered(samples, (len(source), len(target)), ["<unk>", *known])


def _spelling_tagger(model: eb.ParameterCollection, words: int, tags: int, characters: int, dim: int) -> BiLSTMTagger:
    return BiLSTMTagger(model, words, tags, dim, characters=characters)


_TREES = Workload(
    noun="tree",
    place="node",
    files=("trees",),
    folder=("sst/train.txt",),
    stream=partial(stream_trees, binary=True),
    generate=_binary_trees,
    number=_number_trees,
    network=TreeLSTM,
    root=True,
)
_TAGGED = Workload(
    noun="sentence",
    place="word",
    files=("tagged sentences",),
    folder=("wikiner/train.txt",),
    stream=stream_tagged,
    generate=random_tagged,
    number=_number_tagged,
    network=BiLSTMTagger,
)
_LATTICES = Workload(
    noun="lattice",
    place="character",
    files=("lattices",),
    folder=("lattice/train.txt",),
    stream=stream_lattices,
    generate=random_lattices,
    number=_number_lattices,
    network=LatticeLSTM,
)
_PARALLEL = Workload(
    noun="pair",
    place="target word",
    files=("source sentences", "target sentences"),
    folder=("iwslt15/tst2012.en", "iwslt15/tst2012.vi"),
    stream=stream_parallel,
    generate=random_parallel,
    number=_number_parallel,
    network=EncoderDecoder,
)

WORKLOADS = {
    "tree-lstm": _TREES,
    "mv-rnn": replace(_TREES, network=MVRNN),
    "tagger": _TAGGED,
    "tagger-characters": replace(_TAGGED, number=_number_spelled, network=_spelling_tagger),
    "lattice-lstm": _LATTICES,
    "lattice-gru": replace(_LATTICES, network=LatticeGRU),
    "encoder-decoder": _PARALLEL,
}


def get_workload(name: str) -> Workload:
    """The workload of this name.

    Raises:
        EdBatchError: there is none.

    Example:
        >>> get_workload("tagger").noun
        'sentence'
    """
    try:
        return WORKLOADS[name]
    except KeyError:
        raise eb.EdBatchError(f"no model is named {name!r}; expected one of {', '.join(WORKLOADS)}") from None
