"""Programs that answer questions about pictures, in the JSON of CLEVR (Johnson et al. 2017), one per line.

CLEVR itself is one object per file, `{"info": ..., "questions": [...]}`; `jq -c '.questions[]'` makes lines of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
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
_FILTERS = [f"filter_{name}:{name}" for name in ATTRIBUTES]
# By alternatives, the parts of a question in the order in which they run: functions, each of which takes the last
# results that no other has taken, with the kind of its word behind a colon; and parts of parts.
PARTS = {
    "question": [*["bodies count"] * 9, *["bodies exist"] * 3, *["bodies unique query"] * 6, "comparison"],
    "bodies": [*["some"] * 5, "some some union", "some some intersect", "some unique relate:relation filtered", "same"],
    "some": ["scene filtered"],
    "filtered": [*_FILTERS * 2, *map(" ".join, combinations(_FILTERS, 2)), " ".join(_FILTERS)],
    "query": [f"query_{name}" for name in ATTRIBUTES],
    "same": [f"some unique same_{name}" for name in ATTRIBUTES],
    "comparison": [f"some count some count {how}" for how in ("less_than", "greater_than", "equal_integer")]
    + [f"some unique query_{name} some unique query_{name} equal_{name}" for name in ATTRIBUTES],
}
TWO = ("union", "intersect", "less_than", "greater_than", "equal")  # what functions of two inputs begin with


def random_programs(n: int, seed: int) -> list[Program]:
    """`n` programs of 3 to 15 steps, chains and trees, without answers.

    Half have 4 to 7 steps, 5.6 on average; of 673 programs made from CLEVR's templates half 4 to 7, 5.8 on average.
    """
    draws = Draws(seed)
    programs = [Program("", []) for _ in range(n)]
    for program in programs:
        _grow(program.steps, "question", [], draws)
    return programs


def _grow(steps: list[Step], part: str, free: list[int], draws: Draws) -> None:
    """Add a part to a program; `free`: the steps whose results nothing has taken."""
    if part in PARTS:
        for inner in draws.one_of(PARTS[part]).split():
            _grow(steps, inner, free, draws)
        return
    function, _, kind = part.partition(":")
    first = len(free) - (function != "scene") - function.startswith(TWO)
    inputs, free[first:] = tuple(free[first:]), [len(steps)]
    words = {"relation": RELATIONS, **ATTRIBUTES}
    steps.append(Step(function, inputs, (draws.one_of(words[kind]),) if kind else ()))
