"""Programs that answer questions about pictures, in the JSON of CLEVR (Johnson et al. 2017), one per line.

CLEVR itself is one object per file, `{"info": ..., "questions": [...]}`; `jq -c '.questions[]'` makes lines of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import msgspec

from edbatch.data.draws import Draws
from edbatch.data.files import file_format
from edbatch.errors import EdBatchError, shown

__all__ = ["ATTRIBUTES", "Program", "Step", "parse_program", "random_programs", "read_programs", "write_programs"]


class Step(NamedTuple):
    """One function of a program: its name, the positions of the steps before it whose results it takes, and words."""

    function: str
    inputs: tuple[int, ...]
    values: tuple[str, ...]

    @property
    def module(self) -> str:
        """The function with its words: what has a network of its own.

        Example:
            >>> Step("filter_size", (0,), ("large",)).module
            'filter_size[large]'
        """
        return f"{self.function}[{','.join(self.values)}]" if self.values else self.function


@dataclass(frozen=True, slots=True)
class Program:
    """A question (its text may be empty), the steps to its answer, and the answer, None where it is not known.

    Example:
        >>> text = '{"question": "How many?", "program": [{"function": "scene", "inputs": [], "value_inputs": []},'
        >>> program = parse_program(text + '{"function": "count", "inputs": [0], "value_inputs": []}], "answer": 3}')
        >>> program.steps[1], program.answer, len(program)
        (Step(function='count', inputs=(0,), values=()), '3', 2)
    """

    question: str
    steps: list[Step]
    answer: str | None = None

    def __len__(self) -> int:
        return len(self.steps)

    def __str__(self) -> str:
        program = [{"function": f, "inputs": at, "value_inputs": words} for f, at, words in self.steps]
        answer = {} if self.answer is None else {"answer": self.answer}
        return msgspec.json.encode({"question": self.question, "program": program, **answer}).decode()


class _Step(msgspec.Struct):
    function: str = ""
    type: str = ""  # of CLEVR-Humans and others, for `function`
    inputs: tuple[int, ...] = ()
    value_inputs: tuple[str, ...] = ()


class _Question(msgspec.Struct):
    program: Annotated[list[_Step], msgspec.Meta(min_length=1)]
    question: str = ""
    answer: str | bool | int | float | None = None


def parse_program(text: str, place: str = "program") -> Program:
    """Read one question as JSON: an object with `program`, and perhaps `question` and `answer`; the rest is left out.

    Where it is no such object, or a step takes what is not before it, an EdBatchError names `place` and the step.
    """
    try:
        found = msgspec.json.decode(text, type=_Question)
    except (msgspec.DecodeError, RecursionError) as error:
        raise EdBatchError(f"{place}: {error}; expected a question as JSON, found {shown(text.strip())}") from None
    steps = [Step(step.function or step.type, step.inputs, step.value_inputs) for step in found.program]
    for at, step in enumerate(steps):
        if not step.function or not all(0 <= i < at for i in step.inputs):
            raise EdBatchError(f'{place}: step {at}: expected a "function", of steps before it, found {step}')
    return Program(found.question, steps, None if found.answer is None else str(found.answer))


read_programs, write_programs = file_format(
    parse_program, "programs", 'one per line, such as {"question": "How many?", "program": [...]}'
)

# Random questions about scenes of simple bodies.
ATTRIBUTES = {
    "size": ["large", "small"],
    "color": ["gray", "red", "blue", "green", "brown", "purple", "cyan", "yellow"],
    "material": ["rubber", "metal"],
    "shape": ["cube", "sphere", "cylinder"],
}
RELATIONS = ["left", "right", "behind", "front"]


def random_programs(n: int, seed: int) -> list[Program]:
    """`n` programs of 3 to 14 steps, chains and trees, without answers.

    Half have 4 to 8 steps, 5.9 on average; of 673 programs made from CLEVR's templates half 4 to 7, 5.8 on average.
    """
    draws = Draws(seed)
    return [_Asked(draws).program for _ in range(n)]


class _Asked:
    """Grows one program; each method adds steps and returns the last one's position."""

    def __init__(self, draws: Draws) -> None:
        self._draws = draws
        self.program = Program("", [])
        kind = draws.fraction()
        if kind < 0.45:
            self._add("count", self._bodies())
        elif kind < 0.6:
            self._add("exist", self._bodies())
        elif kind < 0.9:
            self._add(f"query_{self._draws.one_of(list(ATTRIBUTES))}", self._add("unique", self._bodies()))
        elif kind < 0.96:
            counts = [self._add("count", self._filtered(self._add("scene"))) for _ in range(2)]
            self._add(self._draws.one_of(["less_than", "greater_than", "equal_integer"]), *counts)
        else:
            asked = self._draws.one_of(list(ATTRIBUTES))
            ends = [self._add("unique", self._filtered(self._add("scene"))) for _ in range(2)]
            self._add(f"equal_{asked}", *[self._add(f"query_{asked}", end) for end in ends])

    def _add(self, function: str, *inputs: int, value: str | None = None) -> int:
        self.program.steps.append(Step(function, inputs, () if value is None else (value,)))
        return len(self.program.steps) - 1

    def _filtered(self, at: int) -> int:
        """One attribute or more, each at most once."""
        for name, values in ATTRIBUTES.items():
            if self._draws.chance(0.4):
                at = self._add(f"filter_{name}", at, value=self._draws.one_of(values))
        if self.program.steps[at].function.startswith("filter"):
            return at
        name = self._draws.one_of(list(ATTRIBUTES))
        return self._add(f"filter_{name}", at, value=self._draws.one_of(ATTRIBUTES[name]))

    def _bodies(self) -> int:
        """The bodies that a question is about."""
        found = self._filtered(self._add("scene"))
        kind = self._draws.fraction()
        if kind < 0.2:
            beside = self._add("relate", self._add("unique", found), value=self._draws.one_of(RELATIONS))
            return self._filtered(beside)
        if kind < 0.3:
            return self._add(f"same_{self._draws.one_of(list(ATTRIBUTES))}", self._add("unique", found))
        if kind < 0.42:
            return self._add(self._draws.one_of(["union", "intersect"]), found, self._filtered(self._add("scene")))
        return found
