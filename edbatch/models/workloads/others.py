"""Workloads over lattices, translated sentences, programs that answer questions, and points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.data.lattices import Lattice, Sizes, sizes, stream_lattices
from edbatch.data.parallel import SentencePair, random_parallel, stream_parallel
from edbatch.data.programs import Program, stream_programs
from edbatch.data.random_lattices import random_lattices
from edbatch.data.random_points import LabelledPoint, random_labelled_points
from edbatch.data.random_programs import ATTRIBUTES, random_programs
from edbatch.data.vocabulary import Vocabulary
from edbatch.models.classifier import Classifier
from edbatch.models.encoder_decoder import AttentionEncoderDecoder, EncoderDecoder
from edbatch.models.experts import MixtureOfExperts
from edbatch.models.lattice import LatticeGRU, LatticeLSTM
from edbatch.models.module_network import ModuleNetwork
from edbatch.models.workloads.workload import Known, Numbered, Workload, distinct

FEATURES, SIDE = 8, 8  # channels of a picture's features, and its height and width
ANSWERS = ["yes", "no", *map(str, range(11)), *distinct(ATTRIBUTES.values())]
EXPERTS = 16


class PictureQuestions(ModuleNetwork):
    """`ModuleNetwork` over pictures that are given as arrays; `dim` channels between modules."""

    def __init__(self, model: eb.ParameterCollection, modules: dict[str, int], dim: int) -> None:
        super().__init__(model, modules, FEATURES, dim, SIDE, len(ANSWERS))

    def hidden(self, steps: Sequence[Any], picture: np.ndarray) -> list[eb.Expression]:  # type: ignore[override]
        """The result of the program."""
        return [super().hidden(steps, eb.input(picture))]


class ExpertClassifier(Classifier):
    """A layer of `MixtureOfExperts`, of which the best is asked, and a softmax over its answer."""

    def __init__(self, model: eb.ParameterCollection, inputs: int, labels: int, dim: int) -> None:
        super().__init__(model, dim, labels)
        self.layer = MixtureOfExperts(model, EXPERTS, inputs, dim)

    async def answer(self, x: Sequence[float]) -> list[eb.Expression]:
        """Probabilities of the classes; a program."""
        return [self.probabilities(await self.layer.mix(eb.input(x)))]

    async def guided(self, x: Sequence[float], right: Sequence[int]) -> list[eb.Expression]:
        """Scores of the classes, whatever is right; a program."""
        return [self.scores(await self.layer.mix(eb.input(x)))]


def _number_lattices(lattices: list[Lattice], known: Known) -> Numbered:
    """By their own numbers: the model has a row of its tables for each."""
    found = Sizes(*known["sizes"])
    for at, lattice in enumerate(lattices, start=1):
        for name, size in sizes([lattice])._asdict().items():
            if size > (most := getattr(found, name)):
                raise eb.EdBatchError(
                    f"lattice {at}: expected {name} up to {most - 1}, as the model has, got {size - 1}"
                )
    return Numbered([(lattice.arcs,) for lattice in lattices], found, list(range(found.tags)))


def _know_pairs(pairs: list[SentencePair]) -> Known:
    source, target = (distinct(pair[side] for pair in pairs) for side in (0, 1))
    return {"source": source, "target": distinct([["<s>", "</s>"], target])}


def _number_pairs(pairs: list[SentencePair], known: Known) -> Numbered:
    source, target = Vocabulary(known["source"]), Vocabulary(known["target"])
    samples = [([source[word] for word in pair.source], [target[word] for word in pair.target]) for pair in pairs]
    return Numbered(samples, (len(source), len(target)), ["<unk>", *known["target"]])


def _number_programs(programs: list[Program], known: Known) -> Numbered:
    """Each with a random picture of its own."""
    random = np.random.default_rng(0)
    pictures = random.random((len(programs), FEATURES, SIDE, SIDE), dtype=np.float32)
    samples = [(program.steps, picture) for program, picture in zip(programs, pictures, strict=True)]
    return Numbered(samples, (known["modules"],), ANSWERS)


def _know_points(points: list[LabelledPoint]) -> Known:
    return {"coordinates": len(points[0].x), "labels": sorted({point.label for point in points})}


def _number_points(points: list[LabelledPoint], known: Known) -> Numbered:
    return Numbered([(point.x,) for point in points], (known["coordinates"], len(known["labels"])), known["labels"])


_LATTICES = Workload(
    noun="lattice",
    place="character",
    files=("lattices",),
    folder=("lattice/train.txt",),
    stream=stream_lattices,
    generate=random_lattices,
    know=lambda lattices: {"sizes": list(sizes(lattices))},
    numbered=_number_lattices,
    network=LatticeLSTM,
    right=lambda lattice: lattice.tags[1:],
)
_PAIRS = Workload(
    noun="pair",
    place="target word",
    files=("source sentences", "target sentences"),
    folder=("iwslt15/tst2012.en", "iwslt15/tst2012.vi"),
    stream=stream_parallel,
    generate=random_parallel,
    know=_know_pairs,
    numbered=_number_pairs,
    network=EncoderDecoder,
    right=lambda pair: [*pair.target, "</s>"],
)
_QUESTIONS = Workload(
    noun="question",
    place="answer",
    files=("programs",),
    folder=("clevr/train.jsonl",),
    stream=stream_programs,
    generate=random_programs,
    know=lambda programs: {"modules": ModuleNetwork.modules_of(program.steps for program in programs)},
    numbered=_number_programs,
    network=PictureQuestions,
    hidden=16,
    right=lambda program: None if program.answer is None else [program.answer],
)
_POINTS = Workload(
    noun="point",
    place="answer",
    generate=random_labelled_points,
    know=_know_points,
    numbered=_number_points,
    network=ExpertClassifier,
    program=True,
    right=lambda point: [point.label],
)

NINE = {
    "lattice-lstm": _LATTICES,
    "lattice-gru": replace(_LATTICES, network=LatticeGRU),
    "encoder-decoder": _PAIRS,
}
OTHERS = {
    "attention-decoder": replace(_PAIRS, network=AttentionEncoderDecoder),
    "module-network": _QUESTIONS,
    "mixture-of-experts": _POINTS,
}
