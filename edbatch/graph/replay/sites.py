"""Which code has run already while something was recorded, so that what runs for the first time is looked into."""

from __future__ import annotations

import dis
import gc
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from edbatch.graph.watch.modules import is_pure

_CALLS = frozenset(["CALL", "CALL_FUNCTION_EX", "CALL_KW"])
_JUMPS = frozenset([*dis.hasjrel, *dis.hasjabs])

Tracer = Callable[[FrameType, str, Any], Any]
Site = tuple["Calls", bool, int]  # whether the number is of an instruction and not of a line


class Calls:
    """The places in a function's code that call something and have not run yet.

    A line runs as a whole if its instructions lie side by side and there is no jump before a call in it. In another, as
    `a() if x else b()`, each call is told by itself, which takes longer.

    Attributes:
        code: held, so that no `id` comes twice.
        lines: that have not run.
        instructions: the same, by their offsets.
    """

    __slots__ = ("code", "instructions", "lines")

    def __init__(self, code: CodeType) -> None:
        self.code = code
        calls: dict[int, list[int]] = {}  # offsets by line
        begun: set[int] = set()
        jumps: set[int] = set()  # lines of which not all may run
        line = -1
        for step in dis.get_instructions(code):
            now = line if step.positions is None or step.positions.lineno is None else step.positions.lineno
            if now != line and now in begun:
                jumps.add(now)
            is_inside = now == line
            line = now
            begun.add(line)
            if step.opname in _CALLS:
                calls.setdefault(line, []).append(step.offset)
            elif (is_inside and step.is_jump_target) or step.opcode in _JUMPS:
                jumps.add(line)
        self.lines = set(calls).difference(jumps)
        self.instructions = {offset for at in jumps.intersection(calls) for offset in calls[at]}


class Ran:
    """What has run for the first time: functions of users, and calls in them."""

    def __init__(self) -> None:
        self.codes: dict[int, Calls] = {}
        self.sites: set[Site] = set()
        self.failed: set[Site] = set()  # lines that an exception has ended

    @property
    def is_new(self) -> bool:
        """Whether there is anything."""
        return bool(self.codes or self.sites)

    def tracer(self, calls: Calls) -> Tracer:
        """What is told of the lines and instructions of one function."""
        lines, instructions, sites, failed = calls.lines, calls.instructions, self.sites, self.failed

        def within(frame: FrameType, kind: str, about: Any) -> Any:
            if kind == "line":
                if frame.f_lineno in lines:
                    sites.add((calls, False, frame.f_lineno))
            elif kind == "opcode":
                if frame.f_lasti in instructions:
                    sites.add((calls, True, frame.f_lasti))
            elif kind == "exception":
                failed.add((calls, False, frame.f_lineno))
            return within

        return within


class Sites:
    """Functions of users that have run, and the places in them that have called something.

    What a function reads follows from its code, whichever way it goes through it. What it calls, of C or of this
    package, is known only when it does: it may be the first sample of ten thousand for which random numbers are drawn.
    Python tells a profiler of every call, which takes ten times as long as recording; so it is asked for lines, and
    only in functions that have lines with calls left that have never run.
    """

    def __init__(self) -> None:
        self._codes: dict[int, Calls] = {}
        self._pure: dict[int, CodeType] = {}

    def add(self, ran: Ran) -> None:
        """Know what has run, once it is known what it reads."""
        self._codes |= ran.codes
        for calls, is_instruction, number in ran.sites.difference(ran.failed):
            (calls.instructions if is_instruction else calls.lines).discard(number)

    def run(self, ran: Ran, function: Callable[[], Any]) -> Any:
        """Run a function; what it returns. What has run that was not known is noted."""
        before: Any = sys.gettrace()
        tracers: dict[int, Tracer | None] = {}

        def called(frame: FrameType, kind: str, about: Any) -> Any:
            code = frame.f_code
            try:
                ours = tracers[id(code)]
            except KeyError:
                ours = tracers[id(code)] = self._tracer(frame, ran)
            tracer = ours if before is None else _both(ours, before(frame, kind, about))
            if ours is not None and (self._codes.get(id(code)) or ran.codes[id(code)]).instructions:
                frame.f_trace = tracer  # that there is one is looked for where instructions are asked for
                frame.f_trace_opcodes = True
            return tracer

        collects = gc.isenabled()
        try:
            gc.disable()
            sys.settrace(called)
            return function()
        finally:
            sys.settrace(before)
            if collects:
                gc.enable()

    def _tracer(self, frame: FrameType, ran: Ran) -> Tracer | None:
        """What is to be told of a function that is called; None: nothing any more."""
        code = frame.f_code
        if id(code) in self._pure:
            return None
        calls = self._codes.get(id(code))
        if calls is None:
            if is_pure(frame.f_globals.get("__name__", "")):
                self._pure[id(code)] = code
                return None
            calls = ran.codes[id(code)] = Calls(code)
        return ran.tracer(calls) if calls.lines or calls.instructions else None


def _both(ours: Tracer | None, theirs: Tracer | None) -> Tracer | None:
    """A debugger's tracer, and what is to be known of a function."""
    if ours is None or theirs is None:
        return ours or theirs

    def both(frame: FrameType, kind: str, about: Any) -> Any:
        nonlocal theirs
        ours(frame, kind, about)
        if theirs is not None and kind != "opcode":
            theirs = theirs(frame, kind, about)
        return both

    return both
