"""Workloads over sentences and their translations."""

from __future__ import annotations

from dataclasses import replace

from edbatch.data.parallel import SentencePair, random_parallel, stream_parallel
from edbatch.data.vocabulary import Vocabulary
from edbatch.models.attention_decoder import AttentionEncoderDecoder
from edbatch.models.encoder_decoder import EncoderDecoder
from edbatch.models.workloads.workload import Known, Numbered, Workload


def _know_parallel(pairs: list[SentencePair]) -> Known:
    source = [word for pair in pairs for word in pair.source]
    target = ["<s>", "</s>"] + [word for pair in pairs for word in pair.target]
    return {"source": list(dict.fromkeys(source)), "target": list(dict.fromkeys(target))}


def _number_parallel(pairs: list[SentencePair], known: Known) -> Numbered:
    source, target = Vocabulary(known["source"]), Vocabulary(known["target"])
    samples = [([source[word] for word in pair.source], [target[word] for word in pair.target]) for pair in pairs]
    return Numbered(samples, (len(source), len(target)), ["<unk>", *known["target"]])


_PARALLEL = Workload(
    noun="pair",
    place="target word",
    files=("source sentences", "target sentences"),
    folder=("iwslt15/tst2012.en", "iwslt15/tst2012.vi"),
    stream=stream_parallel,
    generate=random_parallel,
    know=_know_parallel,
    numbered=_number_parallel,
    network=EncoderDecoder,
    right=lambda pair: [*pair.target, "</s>"],
)

NINE = {"encoder-decoder": _PARALLEL}
OTHERS = {"attention-decoder": replace(_PARALLEL, network=AttentionEncoderDecoder)}
