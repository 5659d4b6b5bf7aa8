"""Train a transition-based parser to find heads and relations, with a dynamic oracle.

    python -m scripts.train.parser                                         # on a made-up grammar
    python -m scripts.train.parser --train train.conllu --dev dev.conllu   # on dependency trees

What comes next follows from scores that were computed: the sentences of a mini-batch are programs that run together.
A run that was stopped goes on; its learning curve is runs/parser/curve.png and .json.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

import edbatch as eb
from edbatch.data.dependencies import DependencySentence, random_dependencies, read_conllu
from edbatch.data.vocabulary import Vocabulary
from edbatch.models import TransitionParser
from scripts.train.script import ProgramTask, Script, Source

EXPLORE = 0.1  # how often the parser's own choice is made in training, be it right or not


class Parsed(NamedTuple):
    """A sentence in numbers."""

    number: int
    words: list[int]
    heads: list[int]
    relations: list[int]


def prepare(
    model: eb.ParameterCollection, train: list[DependencySentence], dev: list[DependencySentence], hidden: int
) -> ProgramTask:
    """Words that occur once share one embedding; trees whose arcs cross are measured on, but not learned from."""
    train = [sentence for sentence in train if sentence.is_projective]
    words = Vocabulary((word for sentence in train for word in sentence.words), at_least=2)
    relations = sorted({relation for sentence in train + dev for relation in sentence.relations})
    network = TransitionParser(model, len(words), len(relations), hidden)

    def numbered(sentences: list[DependencySentence]) -> list[Parsed]:
        return [
            Parsed(at, [words[word] for word in one.words], one.heads, [relations.index(x) for x in one.relations])
            for at, one in enumerate(sentences)
        ]

    def loss(sample: Parsed) -> Any:
        return network.loss(sample.words, sample.heads, sample.relations, EXPLORE, Random(sample.number))

    return ProgramTask(numbered(train), numbered(dev), loss, lambda sample: network.parse(sample.words), measure)


def measure(answers: list[tuple[Sequence[int], Sequence[int]]], samples: list[Parsed]) -> dict[str, float]:
    """Of how many words the head is right (UAS), and the relation, too (LAS)."""
    arcs = [
        (head == right, head == right and relation == right_relation)
        for (heads, relations), sample in zip(answers, samples, strict=True)
        for head, relation, right, right_relation in zip(heads, relations, sample.heads, sample.relations, strict=True)
    ]
    unlabelled, labelled = zip(*arcs, strict=True)
    return {"UAS": sum(unlabelled) / len(arcs), "LAS": sum(labelled) / len(arcs)}


SCRIPT = Script(
    __doc__, "parser", prepare, Source(random_dependencies, read_conllu, ("CoNLL-U",)), defaults={"epochs": 5}
)

if __name__ == "__main__":
    SCRIPT.main()
