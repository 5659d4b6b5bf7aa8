"""The workload of programs that answer questions about pictures; what is seen in a picture is made up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.data.programs import Program, stream_programs
from edbatch.data.random_programs import ATTRIBUTES, random_programs
from edbatch.models.module_network import ModuleNetwork
from edbatch.models.workloads.workload import Known, Numbered, Workload

FEATURES, SIDE = 8, 8  # channels of what is seen in a picture, and its height and width
ANSWERS = ["yes", "no", *map(str, range(11)), *(value for values in ATTRIBUTES.values() for value in values)]


class PictureQuestions(ModuleNetwork):
    """`edbatch.models.ModuleNetwork` over pictures that are given as arrays; `dim` channels between modules."""

    def __init__(self, model: eb.ParameterCollection, modules: dict[str, int], dim: int) -> None:
        super().__init__(model, modules, FEATURES, dim, SIDE, len(ANSWERS))

    def hidden(self, steps: Sequence[Any], picture: np.ndarray) -> list[eb.Expression]:  # type: ignore[override]
        """What the program leads to; arguments as of `ModuleNetwork.hidden`."""
        return [super().hidden(steps, eb.input(picture))]


def _know_programs(programs: list[Program]) -> Known:
    return {"modules": ModuleNetwork.modules_of(program.steps for program in programs)}


def _number_programs(programs: list[Program], known: Known) -> Numbered:
    """Each with a picture of its own."""
    random = np.random.default_rng(0)
    pictures = random.random((len(programs), FEATURES, SIDE, SIDE), dtype=np.float32)
    samples = [(program.steps, picture) for program, picture in zip(programs, pictures, strict=True)]
    return Numbered(samples, (known["modules"],), ANSWERS)


OTHERS = {
    "module-network": Workload(
        noun="question",
        place="answer",
        files=("programs",),
        folder=("clevr/train.jsonl",),
        stream=stream_programs,
        generate=random_programs,
        know=_know_programs,
        numbered=_number_programs,
        network=PictureQuestions,
        hidden=16,
        right=lambda program: None if program.answer is None else [program.answer],
    )
}
