"""Train a BiLSTM tagger, which reads rare words by their characters, to find names in text.

    python -m scripts.train.tagger                                    # on made-up news
    EDBATCH_DATA=... python -m scripts.train.tagger --real            # on WikiNER
    python -m scripts.train.tagger --train train.txt --dev dev.txt    # on lines of word|TAG word|TAG ...

A run that was stopped goes on; its learning curve is runs/tagger-characters/curve.png and .json.
"""

from __future__ import annotations

import edbatch as eb
from edbatch.data.tagged import TaggedSentence
from edbatch.data.vocabulary import Vocabulary
from edbatch.models import BiLSTMTagger
from edbatch.models.workloads import RARE
from scripts.train.script import Sample, Scores, Script, Task


def prepare(model: eb.ParameterCollection, train: list[TaggedSentence], dev: list[TaggedSentence], hidden: int) -> Task:
    """Rare and unknown words are read by their characters."""
    words = Vocabulary((word for sentence in train for word in sentence.words), at_least=RARE)
    letters = Vocabulary(letter for sentence in train for word in sentence.words for letter in word)
    tags = sorted({tag for sentence in train + dev for tag in sentence.tags})
    number = {tag: i for i, tag in enumerate(tags)}

    def numbered(sentences: list[TaggedSentence]) -> list[Sample]:
        spelled = [
            [words[word] if word in words else [letters[letter] for letter in word] for word in sentence.words]
            for sentence in sentences
        ]
        return [Sample((x,), [number[tag] for tag in s.tags]) for x, s in zip(spelled, sentences, strict=True)]

    def measure(scores: Scores, samples: list[Sample]) -> dict[str, float]:
        """How many tags are right, and the F1 of whole names."""
        found = [[tags[best] for best in rows.argmax(axis=1)] for rows in scores]
        expected = [[tags[label] for label in sample.labels] for sample in samples]
        pairs = [(a, b) for x, y in zip(found, expected, strict=True) for a, b in zip(x, y, strict=True)]
        return {"accuracy": sum(a == b for a, b in pairs) / len(pairs), "entity F1": f1(found, expected)}

    network = BiLSTMTagger(model, len(words), len(tags), hidden, layers=1, characters=len(letters))
    return Task(network, numbered(train), numbered(dev), measure)


def entities(tags: list[str]) -> set[tuple[int, int, str]]:
    """Names as (begin, end, kind): neighbours of one kind; a tag B-... begins another."""
    found = set()
    begin, kind = 0, ""
    for at, tag in enumerate([*tags, "O"]):
        prefix, _, now = tag.partition("-")
        if now != kind or prefix == "B":
            if kind:
                found.add((begin, at, kind))
            begin, kind = at, now
    return found


def f1(found: list[list[str]], expected: list[list[str]]) -> float:
    """Harmonic mean of precision and recall of names: right if begin, end and kind are."""
    right = total = 0
    for a, b in zip(map(entities, found), map(entities, expected), strict=True):
        right += len(a & b)
        total += len(a) + len(b)
    return 2 * right / total if total else 1.0


SCRIPT = Script(__doc__, "tagger-characters", prepare, dev=("wikiner/dev.txt",))

if __name__ == "__main__":
    SCRIPT.main()
