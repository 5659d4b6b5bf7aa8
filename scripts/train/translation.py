"""Train a small encoder-decoder to translate.

    python -m scripts.train.translation                                      # made-up: sentences read backwards
    EDBATCH_DATA=... python -m scripts.train.translation --real              # TED talks, English to Vietnamese
    python -m scripts.train.translation --train a.txt b.txt --dev c.txt d.txt    # sentences line by line

On the real data it learns little more than the language: 1,400 sentences are far too few to translate.
A run that was stopped goes on; its learning curve is runs/encoder-decoder/curve.png and .json.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import edbatch as eb
from edbatch.data.parallel import SentencePair
from edbatch.data.vocabulary import Vocabulary
from edbatch.models import EncoderDecoder
from scripts.train.script import Sample, Scores, Script, Task

BOUNDS = ("<s>", "</s>")  # begin and end of a target sentence: numbers 1 and 2, which the model expects


def prepare(model: eb.ParameterCollection, train: list[SentencePair], dev: list[SentencePair], hidden: int) -> Task:
    """Words that occur once share one embedding, which stands for unknown words."""
    source = Vocabulary((word for pair in train for word in pair.source), at_least=2)
    target = Vocabulary([*BOUNDS, *BOUNDS, *(word for pair in train for word in pair.target)], at_least=2)
    network = EncoderDecoder(model, len(source), len(target), hidden)

    def numbered(words: Vocabulary, sentence: Sequence[str]) -> list[int]:
        return [words[word] for word in sentence]

    def samples(pairs: list[SentencePair]) -> list[Sample]:
        both = [(numbered(source, pair.source), numbered(target, pair.target)) for pair in pairs]
        return [Sample(pair, [*pair[1], network.end]) for pair in both]

    return Task(network, samples(train), samples(dev), measure)


def measure(scores: Scores, samples: list[Sample]) -> dict[str, float]:
    """How many next words are right after the right ones before, and the perplexity."""
    rows = np.concatenate(scores).astype(np.float64)
    expected = np.concatenate([sample.labels for sample in samples])
    of_right = rows[np.arange(len(rows)), expected]
    losses = np.log(np.exp(rows - rows.max(axis=1, keepdims=True)).sum(axis=1)) + rows.max(axis=1) - of_right
    return {
        "accuracy of the next word": float((rows.argmax(axis=1) == expected).mean()),
        "perplexity": float(np.exp(losses.mean())),
    }


SCRIPT = Script(
    __doc__, "encoder-decoder", prepare, defaults={"epochs": 15, "lr": 5e-3}, drawn=("accuracy of the next word",)
)

if __name__ == "__main__":
    SCRIPT.main()
