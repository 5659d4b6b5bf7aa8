"""What is to be known of samples of each kind, and their numbers by what is known; what is right in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.data.dependencies import DependencySentence
from edbatch.data.lattices import Lattice, Sizes
from edbatch.data.parallel import SentencePair
from edbatch.data.programs import Program
from edbatch.data.random_points import LabelledPoint
from edbatch.data.tagged import TaggedSentence
from edbatch.data.trees import Tree
from edbatch.data.vocabulary import Vocabulary
from edbatch.models.arc_hybrid import Configuration, Move
from edbatch.models.workloads.networks import ANSWERS, FEATURES, SIDE
from edbatch.models.workloads.workload import Known, Numbered, distinct

RARE = 5  # a word that occurs less often is read by its characters


def knowing(words: Callable[[Any], Iterable[str]], **labels: Callable[[Any], Iterable[Any]]) -> Callable[..., Known]:
    """A function of samples: their words, as they first occur, and labels of some kinds, sorted."""
    return lambda samples: {
        "words": distinct(map(words, samples)),
        **{kind: sorted(distinct(map(of, samples))) for kind, of in labels.items()},
    }


def words_of(tree: Tree) -> list[str]:
    """The words of a tree's leaves."""
    return [word for word in tree.words if word is not None]


def number_trees(trees: list[Tree], known: Known) -> Numbered:
    """As words and children of nodes."""
    words, labels = Vocabulary(known["words"]), known["labels"]
    samples = [([None if word is None else words[word] for word in tree.words], tree.children) for tree in trees]
    return Numbered(samples, (len(words), len(labels)), labels)


def number_nested(trees: list[Tree], known: Known) -> Numbered:
    """As pairs of pairs of words; the label of the root is the topic of a tree."""
    words, topics = Vocabulary(known["words"]), known["labels"]
    samples = []
    for at, tree in enumerate(trees, start=1):
        if tree.labels[-1] not in topics:
            raise eb.EdBatchError(f"tree {at}: {tree.labels[-1]!r} is not a label of the model")
        nodes: list[Any] = []
        for word, children in zip(tree.words, tree.children, strict=True):
            nodes.append(tuple(nodes[child] for child in children) if word is None else words[word])
        samples.append((nodes[-1], topics.index(tree.labels[-1])))
    return Numbered(samples, (len(words), len(topics)), ["<unk>", *known["words"], "()"])


def from_the_root(tree: Tree) -> list[str]:
    """A word or "()" of every node, as `TreeGenerator` says them: a node, what is below on the left, then the right."""
    found: list[str] = []
    waiting = [len(tree) - 1]
    while waiting:
        node = waiting.pop()
        found.append(tree.words[node] or "()")
        waiting += reversed(tree.children[node])
    return found


know_tagged = knowing(attrgetter("words"), tags=attrgetter("tags"))


def know_spelled(sentences: list[TaggedSentence]) -> Known:
    """Words that are frequent, tags, and the letters of all words."""
    known = know_tagged(sentences)
    frequent = Vocabulary(chain(*(sentence.words for sentence in sentences)), at_least=RARE)
    return known | {"words": [x for x in known["words"] if x in frequent], "letters": distinct(known["words"])}


def number_tagged(sentences: list[TaggedSentence], known: Known) -> Numbered:
    """As words, or their letters, where these are known and the word is not."""
    tables = [Vocabulary(known[kind]) for kind in ("words", "letters") if kind in known]
    words, letters = tables[0], tables[-1]

    def number(word: str) -> int | list[int]:
        return words[word] if letters is words or word in words else [letters[letter] for letter in word]

    samples = [([number(word) for word in sentence.words],) for sentence in sentences]
    return Numbered(samples, (len(words), len(known["tags"]), *map(len, tables[1:])), known["tags"])


def number_words(sentences: list[list[str]], known: Known) -> Numbered:
    """As words, which are the labels, too."""
    words = Vocabulary(known["words"])
    return Numbered([([words[word] for word in x],) for x in sentences], (len(words),), ["<unk>", *known["words"]])


def number_leaves(pieces: list[list[str]], known: Known) -> Numbered:
    """Text does not say the label of a piece: there are five, as of sentiment."""
    samples, (words,), _ = number_words(pieces, known)
    return Numbered(samples, (words, 5), list(range(5)))


def number_parsed(sentences: list[DependencySentence], known: Known) -> Numbered:
    """As words; the labels are a parser's actions."""
    samples, (words,), _ = number_words([sentence.words for sentence in sentences], known)
    actions = ["shift", *(f"{move}-{relation}" for move in ("left", "right") for relation in known["relations"])]
    return Numbered(samples, (words, len(known["relations"])), actions)


def transitions(sentence: DependencySentence) -> list[str] | None:
    """The actions that make the arcs of a sentence, as late as they can be; None where arcs cross."""
    state, found = Configuration(len(sentence)), []
    while not state.is_over:
        free = [move for move in state.allowed() if not state.cost(move, sentence.heads)]
        if not free or not sentence.is_projective:
            return None
        word = 0 if free[0] is Move.SHIFT else state.stack[-1]
        found.append(f"{free[0].name.lower()}-{sentence.relations[word - 1]}" if word else "shift")
        state.apply(free[0])
    return found


def number_lattices(lattices: list[Lattice], known: Known) -> Numbered:
    """By their own numbers: the model has a row of its tables for each."""
    found = Sizes(*known["sizes"])
    return Numbered([(lattice.arcs,) for lattice in lattices], found, list(range(found.tags)))


def know_pairs(pairs: list[SentencePair]) -> Known:
    """Words of both languages."""
    source, target = (distinct(pair[side] for pair in pairs) for side in (0, 1))
    return {"source": source, "target": distinct([["<s>", "</s>"], target])}


def number_pairs(pairs: list[SentencePair], known: Known) -> Numbered:
    """As words of both languages; the labels are those of the target."""
    source, target = Vocabulary(known["source"]), Vocabulary(known["target"])
    samples = [([source[word] for word in pair.source], [target[word] for word in pair.target]) for pair in pairs]
    return Numbered(samples, (len(source), len(target)), ["<unk>", *known["target"]])


def number_programs(programs: list[Program], known: Known) -> Numbered:
    """Each with a random picture of its own."""
    random = np.random.default_rng(0)
    pictures = random.random((len(programs), FEATURES, SIDE, SIDE), dtype=np.float32)
    samples = [(program.steps, picture) for program, picture in zip(programs, pictures, strict=True)]
    return Numbered(samples, (known["modules"],), ANSWERS)


def number_points(points: list[LabelledPoint], known: Known) -> Numbered:
    """As coordinates."""
    return Numbered([(point.x,) for point in points], (known["coordinates"], len(known["labels"])), known["labels"])
