"""A failing program made small: statements are left out or simplified as long as it fails in the same way."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from time import monotonic

from tests.fuzz.program import NAME, Program, Statement, _without
from tests.fuzz.run import Failure, check

OPTIONS = re.compile(r"eb\.options\([^)]*\)")
ALIAS = re.compile(r"([vu]\d+) = ([a-z]\d+)")


def shrunk(program: Program, failure: Failure, test: Callable = check, seconds: float = 120) -> tuple[Program, Failure]:
    """The smallest program found that fails like this one, and how it fails.

    Args:
        program: that fails.
        failure: how.
        test: says how a program fails.
        seconds: to spend at most.
    """
    end, smaller = monotonic() + seconds, True
    while smaller:
        smaller = False
        for change in (leave_out(128), leave_out(16), leave_out(4), leave_out(1), simplify):
            at = len(program.statements) - 1
            while at >= 0:
                for candidate in change(program, at):
                    if monotonic() > end:
                        return program, failure
                    found = attempt(candidate, test)
                    if found is not None and found.kind == failure.kind:
                        program, failure, smaller = candidate, found, True
                        break
                at = min(at, len(program.statements)) - 1
    return program, failure


def attempt(program: Program, test: Callable) -> Failure | None:
    """How a candidate fails; None also if it is no program any more."""
    try:
        return test(program)
    except Exception:
        return None


def leave_out(size: int) -> Callable:
    """The change that leaves out a statement and those before it, this many in all."""

    def change(program: Program, at: int) -> Iterator[Program]:
        if (len(program.statements) - 1 - at) % size:
            return
        kept = program.statements
        for number in range(at, max(at - size, -1), -1):
            if number < len(kept):
                kept = _without(kept, number)
        yield replace(program, statements=kept)

    return change


def simplify(program: Program, at: int) -> Iterator[Program]:
    """The change that makes one statement simpler, or leaves out one that only gives a value another name."""
    statements = program.statements
    for simpler in simplified(statements[at]):
        yield replace(program, statements=(*statements[:at], simpler, *statements[at + 1 :]))
    if found := ALIAS.fullmatch(statements[at].text):
        others = statements[:at] + statements[at + 1 :]
        yield replace(program, statements=tuple(renamed(other, *found.groups()) for other in others))


def simplified(statement: Statement) -> Iterator[Statement]:
    """A statement with less in it."""
    if statement.returns:
        for at in range(len(statement.body) - 1, -1, -1):
            body = _without(statement.body, at)
            yield replace(statement, body=body)
            if found := ALIAS.fullmatch(statement.body[at].text):
                others = statement.body[:at] + statement.body[at + 1 :]
                yield renamed(replace(statement, body=others), *found.groups())
            for line in simplified(statement.body[at]):
                yield replace(statement, body=(*statement.body[:at], line, *statement.body[at + 1 :]))
        if statement.method:
            yield replace(statement, method=False)
        return
    if "policy=" in statement.text and "policy='none'" not in statement.text:
        yield replace(statement, text=re.sub(r"policy=('[^']*'|None)", "policy='none'", statement.text))
    if "eb.options(" in statement.before:
        plain = OPTIONS.sub("", statement.before).replace("with , ", "with ")
        yield replace(statement, before="" if plain.strip() == "with :" else plain)
    left, found, right = statement.text.partition(" = ")
    if found and re.fullmatch(r"[vu]\d+", left):
        for name in dict.fromkeys(NAME.findall(right)):
            if name[0] in "vua" and right != name:
                yield replace(statement, text=f"{left} = {name}")


def renamed(statement: Statement, name: str, other: str) -> Statement:
    """A statement with another name in place of one."""

    def swapped(text: str) -> str:
        return re.sub(rf"\b{name}\b", other, text)

    return replace(
        statement,
        text=swapped(statement.text),
        body=tuple(renamed(line, name, other) for line in statement.body),
        returns=swapped(statement.returns),
        frame=swapped(statement.frame),
    )
