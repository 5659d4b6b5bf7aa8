"""Programs that answer questions about pictures, in the JSON of CLEVR (Johnson et al. 2017), one per line.

CLEVR itself is one object per file, `{"info": ..., "questions": [...]}`; `jq -c '.questions[]'` makes lines of it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

from edbatch.data.stream import by_line, clipped, file_format
from edbatch.errors import EdBatchError

__all__ = ["Program", "Step", "parse_program", "read_programs", "stream_programs", "write_programs"]


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
        program = [{"function": f, "inputs": list(at), "value_inputs": list(words)} for f, at, words in self.steps]
        answer = {} if self.answer is None else {"answer": self.answer}
        return json.dumps({"question": self.question, "program": program, **answer}, ensure_ascii=False)


def parse_program(text: str, place: str = "program") -> Program:
    """Read one question as JSON: an object with `program`, and perhaps `question` and `answer`; the rest is left out.

    Where it is no such object, or a step takes what is not before it, an EdBatchError names `place` and the step.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        where = f"column {error.colno}: " if isinstance(error, json.JSONDecodeError) else ""
        raise EdBatchError(f"{place}: {where}expected a question as JSON, found {clipped(text.strip())!r}") from None
    steps = found.get("program") if isinstance(found, dict) else None
    if not isinstance(steps, list) or not steps:
        raise EdBatchError(f'{place}: expected an object with "program", a list of steps, found {clipped(text)!r}')
    answer = found.get("answer")
    return Program(
        str(found.get("question", "")),
        [_step(step, f"{place}: step {at}", at) for at, step in enumerate(steps)],
        None if answer is None else str(answer),
    )


def _step(found: Any, place: str, at: int) -> Step:
    named = found if isinstance(found, dict) else {}
    function = named.get("function", named.get("type"))  # CLEVR-Humans and others say "type"
    inputs, values = named.get("inputs", []), named.get("value_inputs", [])
    if not isinstance(function, str) or not function:
        raise EdBatchError(f'{place}: expected an object with "function", a name, found {clipped(json.dumps(found))}')
    if not isinstance(inputs, list) or not all(type(i) is int and 0 <= i < at for i in inputs):
        raise EdBatchError(f'{place}: expected "inputs" among the steps before it, found {clipped(json.dumps(inputs))}')
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise EdBatchError(f'{place}: expected "value_inputs", a list of words, found {clipped(json.dumps(values))}')
    return Step(function, tuple(inputs), tuple(values))


stream_programs, read_programs, write_programs = file_format(
    by_line(parse_program), "programs", 'one per line, such as {"question": "How many?", "program": [...]}'
)
