"""Workloads over sentences: tags, the next word, a full tree over words, and a parser's transitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

import edbatch as eb
from edbatch.data.dependencies import DependencySentence, random_dependencies, stream_conllu
from edbatch.data.sentences import random_pieces, random_sentences, stream_pieces, stream_sentences
from edbatch.data.tagged import TaggedSentence, random_tagged, stream_tagged
from edbatch.data.vocabulary import Vocabulary
from edbatch.models.arc_hybrid import Configuration, Move
from edbatch.models.classifier import Classifier
from edbatch.models.language_model import LanguageModel
from edbatch.models.parser import TransitionParser
from edbatch.models.tagger import BiLSTMTagger
from edbatch.models.trees import TreeFC
from edbatch.models.workloads.workload import Known, Numbered, Workload, distinct

RARE = 5  # a word that occurs less often is read by its characters
STEPS, LEAVES = 64, 256  # words of a sample of Cavs's Fixed-LSTM and Tree-FC


class TreeFCOverWords(Classifier):
    """`TreeFC` over the complete binary tree whose leaves are words, with a softmax at its root."""

    def __init__(self, model: eb.ParameterCollection, words: int, labels: int, dim: int) -> None:
        super().__init__(model, dim, labels)
        self.embed = model.add_lookup_parameters((words, dim), name="embed")
        self.layer = TreeFC(model, dim, dim)

    def hidden(self, words: Sequence[int]) -> list[eb.Expression]:
        """Vector [dim] of the root, over 1, 2, 4, 8, ... words."""
        return [self.layer.root([eb.lookup(self.embed, word) for word in words])]


def _know_tagged(sentences: list[TaggedSentence]) -> Known:
    return {"words": distinct(x.words for x in sentences), "tags": sorted(distinct(x.tags for x in sentences))}


def _number_tagged(sentences: list[TaggedSentence], known: Known) -> Numbered:
    words, tags = Vocabulary(known["words"]), known["tags"]
    return Numbered([([words[word] for word in x.words],) for x in sentences], (len(words), len(tags)), tags)


def _know_spelled(sentences: list[TaggedSentence]) -> Known:
    """Like `_know_tagged`, of words those that are frequent, and the letters of all."""
    known = _know_tagged(sentences)
    frequent = Vocabulary(chain(*(sentence.words for sentence in sentences)), at_least=RARE)
    letters = distinct(known["words"])
    return known | {"words": [word for word in known["words"] if word in frequent], "letters": letters}


def _number_spelled(sentences: list[TaggedSentence], known: Known) -> Numbered:
    """Like `_number_tagged`, rare words as characters."""
    words, letters, tags = Vocabulary(known["words"]), Vocabulary(known["letters"]), known["tags"]
    samples = [
        ([words[word] if word in words else [letters[letter] for letter in word] for word in sentence.words],)
        for sentence in sentences
    ]
    return Numbered(samples, (len(words), len(tags), len(letters)), tags)


def _number_words(sentences: list[list[str]], known: Known) -> Numbered:
    words = Vocabulary(known["words"])
    return Numbered([([words[word] for word in x],) for x in sentences], (len(words),), ["<unk>", *known["words"]])


def _number_leaves(pieces: list[list[str]], known: Known) -> Numbered:
    """Text does not say the label of a piece: there are five, as of sentiment."""
    samples, (words,), _ = _number_words(pieces, known)
    return Numbered(samples, (words, 5), list(range(5)))


def _know_parsed(sentences: list[DependencySentence]) -> Known:
    relations = sorted(distinct(sentence.relations for sentence in sentences))
    return {"words": distinct(sentence.words for sentence in sentences), "relations": relations}


def _number_parsed(sentences: list[DependencySentence], known: Known) -> Numbered:
    words, relations = Vocabulary(known["words"]), known["relations"]
    actions = ["shift", *(f"{move}-{relation}" for move in ("left", "right") for relation in relations)]
    samples = [([words[word] for word in sentence.words],) for sentence in sentences]
    return Numbered(samples, (len(words), len(relations)), actions)


def _transitions(sentence: DependencySentence) -> list[str] | None:
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


def _spelling_tagger(model: eb.ParameterCollection, words: int, tags: int, characters: int, dim: int) -> BiLSTMTagger:
    return BiLSTMTagger(model, words, tags, dim, characters=characters)


_TAGGED = Workload(
    noun="sentence",
    place="word",
    files=("tagged sentences",),
    folder=("wikiner/train.txt",),
    stream=stream_tagged,
    generate=random_tagged,
    know=_know_tagged,
    numbered=_number_tagged,
    network=BiLSTMTagger,
    right=lambda sentence: sentence.tags,
)
_TEXT = Workload(
    noun="sentence",
    place="word",
    files=("sentences",),
    folder=("iwslt15/tst2012.en",),
    stream=stream_sentences,
    generate=random_sentences,
    know=lambda sentences: {"words": distinct([["<s>", "</s>"], *sentences])},
    numbered=_number_words,
    network=LanguageModel,
    right=lambda words: [*words, "</s>"],
)
_PIECES = replace(
    _TEXT,
    noun="piece",
    stream=partial(stream_pieces, length=STEPS),
    generate=lambda n, seed: random_pieces(n, STEPS, seed),
)

NINE = {
    "tagger": _TAGGED,
    "tagger-characters": replace(_TAGGED, know=_know_spelled, numbered=_number_spelled, network=_spelling_tagger),
}
OTHERS = {
    "language-model": _TEXT,
    "language-model-fixed": _PIECES,
    "tree-fc": replace(
        _PIECES,
        place="root",
        stream=partial(stream_pieces, length=LEAVES),
        generate=lambda n, seed: random_pieces(n, LEAVES, seed),
        numbered=_number_leaves,
        network=TreeFCOverWords,
        right=None,
    ),
    "parser": Workload(
        noun="sentence",
        place="transition",
        files=("CoNLL-U sentences",),
        stream=stream_conllu,
        generate=random_dependencies,
        know=_know_parsed,
        numbered=_number_parsed,
        network=TransitionParser,
        program=True,
        right=_transitions,
    ),
}
