"""Programs that answer questions about pictures, in the JSON of CLEVR (Johnson et al. 2017), and made-up ones."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from edbatch.data.lines import clipped, write_samples
from edbatch.data.stream import Stream, stream_samples
from edbatch.errors import EdBatchError


class Step(NamedTuple):
    """One function of a program.

    Attributes:
        function: its name.
        inputs: the positions of the steps whose results it takes, which come before it.
        values: words that it takes.
    """

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
    """A question, what answers it, and the answer.

    Attributes:
        question: its text; may be empty.
        steps: at least one; the last gives the answer.
        answer: None where it is not known.

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
    """Read one question as JSON: an object with `program`, and perhaps `question` and `answer`; what else there is is
    left out.

    Args:
        text: the whole object.
        place: where the text comes from, for error messages.

    Raises:
        EdBatchError: the text is no such object, or a step takes what is not before it; the message names place and
            step.

    Example:
        >>> parse_program('{"program": [{"function": "count", "inputs": [0]}]}', "questions.jsonl:7")
        Traceback (most recent call last):
        edbatch.errors.EdBatchError: questions.jsonl:7: step 0: expected "inputs" among the steps before it, found [0]
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


def stream_programs(path: str | os.PathLike[str], skip_bad: bool = False) -> Stream[Program]:
    """The programs of a file, one at a time; file and errors as of `read_programs`.

    Args:
        skip_bad: skip lines that hold no program, and count them (`.skipped`).
    """
    return stream_samples(path, parse_program, "programs", '{"question": "How many?", "program": [...]}', skip_bad)


def read_programs(path: str | os.PathLike[str], skip_bad: bool = False) -> list[Program]:
    """Read a file with one question per line, as JSON; blank lines are skipped, and with `skip_bad` malformed ones.

    CLEVR itself is one object per file, `{"info": ..., "questions": [...]}`; `jq -c '.questions[]'` makes lines of it.

    Raises:
        EdBatchError: the file cannot be read or holds no program, or a line is none; the message names file, line and
            step, and what was expected there.
    """
    return stream_programs(path, skip_bad).take()


def write_programs(path: str | os.PathLike[str], programs: Iterable[Program]) -> None:
    """Write programs, one per line, so that `read_programs` gives them back.

    Raises:
        EdBatchError: the file cannot be written.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "programs.jsonl"
        >>> programs = [Program("How many?", [Step("scene", (), ()), Step("count", (0,), ())], "3")]
        >>> write_programs(path, programs)
        >>> read_programs(path) == programs
        True
    """
    write_samples(path, programs)
