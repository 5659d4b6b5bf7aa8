"""Workloads over sentences and their translations."""

from __future__ import annotations

from dataclasses import replace

from edbatch.data.parallel import SentencePair, random_parallel, stream_parallel
from edbatch.data.vocabulary import Vocabulary
from edbatch.models.attention_decoder import AttentionEncoderDecoder
from edbatch.models.encoder_decoder import EncoderDecoder
from edbatch.models.workloads.workload import Numbered, Workload


def _number_parallel(pairs: list[SentencePair]) -> Numbered:
    source = Vocabulary(word for pair in pairs for word in pair.source)
    known = list(dict.fromkeys(["<s>", "</s>"] + [word for pair in pairs for word in pair.target]))
    target = Vocabulary(known)
    samples = [([source[word] for word in pair.source], [target[word] for word in pair.target]) for pair in pairs]
    return Numbered(samples, (len(source), len(target)), ["<unk>", *known])


_PARALLEL = Workload(
    noun="pair",
    place="target word",
    files=("source sentences", "target sentences"),
    folder=("iwslt15/tst2012.en", "iwslt15/tst2012.vi"),
    stream=stream_parallel,
    generate=random_parallel,
    number=_number_parallel,
    network=EncoderDecoder,
    right=lambda pair: [*pair.target, "</s>"],
)

NINE = {"encoder-decoder": _PARALLEL}
OTHERS = {"attention-decoder": replace(_PARALLEL, network=AttentionEncoderDecoder)}
