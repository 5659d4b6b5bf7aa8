"""Train an encoder-decoder with attention to translate; it is measured by what it says, greedily and by a beam.

    python -m scripts.train.attention                                      # made-up: sentences read backwards
    EDBATCH_DATA=... python -m scripts.train.attention --real              # TED talks, English to Vietnamese
    python -m scripts.train.attention --train a.txt b.txt --dev c.txt d.txt    # sentences line by line

A run that was stopped goes on; its learning curve is runs/attention-decoder/curve.png and .json.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import edbatch as eb
from edbatch.data.parallel import SentencePair
from edbatch.data.vocabulary import Vocabulary
from edbatch.models import AttentionEncoderDecoder, generation
from edbatch.models.workloads import get_workload
from scripts.train.script import ProgramTask, Sample, Script, Source
from scripts.train.translation import BOUNDS

WIDTH = 4  # of the beam
LONGEST_GRAMS = 4


def prepare(
    model: eb.ParameterCollection, train: list[SentencePair], dev: list[SentencePair], hidden: int
) -> ProgramTask:
    """Words that occur once share one embedding, which stands for unknown words."""
    source = Vocabulary((word for pair in train for word in pair.source), at_least=2)
    target = Vocabulary([*BOUNDS, *BOUNDS, *(word for pair in train for word in pair.target)], at_least=2)
    network = AttentionEncoderDecoder(model, len(source), len(target), hidden + hidden % 2)

    def samples(pairs: list[SentencePair]) -> list[Sample]:
        return [Sample(([source[x] for x in pair.source],), [target[y] for y in pair.target]) for pair in pairs]

    async def loss(sample: Sample) -> list[eb.Expression]:
        (words,), right = sample
        hs = network.hidden(words, right)
        return [network.cross_entropy(h, label) for h, label in zip(hs, (*right, network.end), strict=True)]

    async def answer(sample: Sample) -> list[Sequence[int]]:
        (words,), _ = sample
        longest = 2 * len(words) + 5
        greedy, beam = await eb.all(
            generation.greedy(network, words, longest), generation.beam(network, words, WIDTH, longest)
        )
        return [greedy, beam[0].words]

    return ProgramTask(samples(train), samples(dev), loss, answer, measure)


def measure(answers: list[list[Sequence[int]]], samples: list[Sample]) -> dict[str, float]:
    """BLEU, and how many sentences are right from the first word to the last."""
    right = [list(sample.labels) for sample in samples]
    greedy, beam = ([list(answer[way]) for answer in answers] for way in (0, 1))
    return {
        "sentences right": sum(a == b for a, b in zip(greedy, right, strict=True)) / len(right),
        "BLEU": bleu(greedy, right),
        f"BLEU, beam of {WIDTH}": bleu(beam, right),
    }


def bleu(found: list[list[int]], expected: list[list[int]]) -> float:
    """Papineni et al. 2002, with one reference for each sentence; of all sentences together."""
    logs = 0.0
    for n in range(1, LONGEST_GRAMS + 1):
        matched = total = 0
        for a, b in zip(found, expected, strict=True):
            ours, theirs = (Counter(tuple(x[at : at + n]) for at in range(len(x) - n + 1)) for x in (a, b))
            matched += (ours & theirs).total()
            total += ours.total()
        if not matched:
            return 0.0
        logs += math.log(matched / total) / LONGEST_GRAMS
    ours, theirs = (sum(map(len, sentences)) for sentences in (found, expected))
    return math.exp(logs + min(0.0, 1 - theirs / ours))


_PAIRS = get_workload("encoder-decoder")
SCRIPT = Script(
    __doc__,
    "attention-decoder",
    prepare,
    Source(_PAIRS.generate, _PAIRS.read, _PAIRS.files, _PAIRS.folder),
    defaults={"epochs": 10, "lr": 5e-3},
    drawn=("sentences right", "BLEU"),
)

if __name__ == "__main__":
    SCRIPT.main()
