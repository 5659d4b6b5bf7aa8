"""A program is data: statements of text, and what they make. It prints as a script that runs by itself."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

NAME = re.compile(r"\b[a-z]\d+\b")


@dataclass(frozen=True)
class Statement:
    """One statement, or the definition of a cell.

    Args:
        text: Python, without what stands in front (the graph that is open, indentation).
        before: what stands in front: "with g0: ".
        body: of a cell, its statements; `text` is then its first line, without decorator.
        returns: of a cell, what it returns.
        method: whether the cell is a method of an object that holds the parameters.
    """

    text: str
    before: str = ""
    body: tuple[Statement, ...] = ()
    returns: str = ""
    method: bool = False

    @property
    def makes(self) -> frozenset[str]:
        """The names it binds."""
        if self.returns:
            return frozenset(NAME.findall(self.text.split("(")[0]))
        left, found, _ = self.text.partition(" = ")
        return frozenset(NAME.findall(left)) if found and "(" not in left else frozenset()

    @property
    def names(self) -> frozenset[str]:
        """All names in it."""
        return frozenset(NAME.findall(self.source()))

    def source(self) -> str:
        """As Python."""
        if not self.returns:
            return self.before + self.text
        lines = [*(line.source() for line in self.body), f"return {self.returns}"]
        head = ["@eb.cell", f"def {self.text}:", *("    " + line for line in lines)]
        if not self.method:
            return "\n".join(head)
        owned = sorted(set(re.findall(r"\bp\d+\b", "\n".join(lines))))
        name = next(iter(self.makes))
        attributes = "; ".join(f"self.{p} = {p}" for p in owned) or "pass"
        head = [head[0], head[1].replace("(", "(self, ", 1), *(re.sub(r"\b(p\d+)\b", r"self.\1", x) for x in head[2:])]
        inside = [f"def __init__(self): {attributes}", *head]
        return "\n".join([f"class N{name}:", *("    " + line for line in inside), f"{name} = N{name}().{name}"])


@dataclass(frozen=True)
class Program:
    """Statements, one after the other.

    Args:
        seed: that it was made from.
        dtype: float32 or float64.
    """

    seed: int
    dtype: str = "float32"
    statements: tuple[Statement, ...] = field(default=())

    def source(self) -> str:
        """What runs: names `eb`, `np` and `show` are given."""
        return "\n".join(statement.source() for statement in self.statements) + "\n"

    def script(self) -> str:
        """The same as a file that runs by itself."""
        return f"import numpy as np\n\nimport edbatch as eb\n\nshow = print\n{self.source()}"

    def without(self, at: int) -> Program:
        """Without a statement, and without those that need what it makes."""
        return replace(self, statements=_without(self.statements, at))


def _without(statements: tuple[Statement, ...], at: int) -> tuple[Statement, ...]:
    gone = set(statements[at].makes)
    kept = list(statements[:at])
    for statement in statements[at + 1 :]:
        if statement.text.startswith("del "):
            names = [name for name in statement.text[4:].split(", ") if name not in gone]
            if names:
                kept.append(replace(statement, text="del " + ", ".join(names)))
        elif statement.names & gone:
            gone |= statement.makes
        else:
            kept.append(statement)
    return tuple(kept)
