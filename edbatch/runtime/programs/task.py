"""One program that runs, or a part of one: what it waits for, and who waits for it."""

from __future__ import annotations

import ctypes
from contextlib import ExitStack
from contextvars import Context
from types import GeneratorType
from typing import Any

from edbatch.base.context_stack import on_exit
from edbatch.errors import EdBatchError
from edbatch.graph.columns import Columns
from edbatch.graph.draws import stream
from edbatch.graph.expression import Expression
from edbatch.runtime.programs.requests import Parts, has_begun, is_program

ATTEMPTS = 100  # to end a program that goes on


class Task:
    """A program between two of its steps.

    Attributes:
        sample: number of the program that it is, or is a part of.
        parent, place: the task that waits for it (None of a program itself), and which of the parent's parts it is.
        asked: the expression that it waits for, or several; error: raised where it waits, in place of an answer.
        answer: their values, or what its parts have returned; running: how many of its parts have not ended.
        closed: whether it was ended from outside.
    """

    __slots__ = (
        "_begun", "_drawn", "_enter", "_parts", "_program", "_send", "_stream", "_streams", "answer", "asked", "closed",
        "context", "error", "parent", "place", "running", "sample",
    )  # fmt: skip

    def __init__(
        self, program: Any, context: Context, stream: int, sample: int, parent: Task | None = None, place: int = 0
    ) -> None:
        self._program = program if is_program(program) else program.__await__()
        self._send = self._program.send
        self._begun = False
        self._enter = context.run
        self._stream = stream
        self._drawn = -1
        self._streams = 0  # that began in this one
        self._parts: list[Task] = []
        self.context = context
        self.sample = sample
        self.parent = parent
        self.place = place
        self.asked: Expression | list[Expression] = []
        self.answer: Any = None
        self.error: BaseException | None = None
        self.running = 0
        self.closed = False

    def step(self, graph: Columns) -> Any:
        """Go on with the answer, or the error, to the next request; what it draws comes of a stream of its own.

        Raises:
            StopIteration: it has ended, and returned the exception's value.
            EdBatchError: it was run before, or runs as another program.
            BaseException: what the program raises.
        """
        if not self._begun:
            if is_program(self._program) and has_begun(self._program):
                raise EdBatchError("this program has begun already; give a new coroutine or generator")
            self._begun = True
        graph.stream = self._stream
        graph.next_draw = self._drawn
        try:
            if self.error is None:
                request = self._enter(self._send, self.answer)
            else:
                request = self._enter(self._program.throw, self._taken_error())
        except RuntimeError as error:
            if "no running event loop" in str(error):
                error.add_note(
                    "edbatch.run is no event loop: expected await of expressions, eb.values(...) or eb.all(...)"
                )
            raise
        self._drawn = graph.next_draw
        return request

    def _taken_error(self) -> BaseException | None:
        """What to raise in the program, which nothing holds any more: it holds all frames that it comes through."""
        error, self.error = self.error, None
        return error

    def split(self, parts: Parts) -> list[Task]:
        """Tasks for parts of this one, which it waits for."""
        self.running = len(parts.programs)
        self.answer = [None] * self.running
        self._parts = []
        for place, program in enumerate(parts.programs):
            own = stream(self._stream, self._streams)
            self._streams += 1
            self._parts.append(Task(program, self.context.copy(), own, self.sample, self, place))
        return self._parts

    def close(self) -> None:
        """End it, and its parts, where they are, whatever one of them raises."""
        self.closed = True
        if not self._begun and is_program(self._program) and has_begun(self._program):
            return  # it is another's
        with on_exit(self._end):
            self.close_parts()

    def _end(self) -> None:
        """Close the program: again and again where it catches that (a bare `except` in a loop) and waits once more.

        One that nothing ends is kept for ever. The garbage collector would go on closing it, whatever runs just then;
        and as nobody drives it any more, what it waits for would be computed there, and never end.
        """
        ignored: RuntimeError | None = None
        frame = "gi_frame" if isinstance(self._program, GeneratorType) else "cr_frame"
        for _ in range(ATTEMPTS):
            try:
                self._enter(self._program.close)
            except RuntimeError as error:
                if getattr(self._program, frame) is None:
                    raise
                ignored = ignored or error
            else:
                break
        else:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._program))
        if ignored is not None:
            raise ignored

    def forget_parts(self) -> list[Task]:
        """Hold them no more, so that nothing but a reference is needed to give them back; returns them."""
        parts, self._parts = self._parts, []
        return parts

    def close_parts(self) -> None:
        """End what it waits for."""
        parts = self.forget_parts()
        with ExitStack() as ending:
            for part in parts:
                ending.callback(part.close)
