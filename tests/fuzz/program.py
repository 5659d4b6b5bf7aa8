"""A program is data: statements of text, and what they make. It prints as a script that runs by itself."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

NAME = re.compile(r"\b[a-z]\d+\b")
CELL = """\
@eb.cell
def {head}:
    {body}
    return {returns}"""


@dataclass(frozen=True)
class Statement:
    """One statement, or the definition of a function.

    Args:
        text: Python, without what stands in front (the graph that is open, indentation).
        before: what stands in front: "with g0: ".
        body: of a function, statements; `text` is then its name and arguments.
        returns: of a function, what it returns.
        frame: of a function, what stands around its body.
        method: whether the function is a method of an object that holds the parameters.
    """

    text: str
    before: str = ""
    body: tuple[Statement, ...] = ()
    returns: str = ""
    frame: str = CELL
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
        lines = []
        for line in self.frame.replace("{head}", self.text).replace("{returns}", self.returns).split("\n"):
            space, found, _ = line.partition("{body}")
            lines += [space + inner.source() for inner in self.body] if found else [line]
        if not self.method:
            return "\n".join(lines)
        owned = sorted(set(re.findall(r"\bp\d+\b", "\n".join(lines))))
        name = next(iter(self.makes))
        attributes = "; ".join(f"self.{p} = {p}" for p in owned) or "pass"
        for at, line in enumerate(lines):
            is_head = line.endswith(f"def {self.text}:")
            lines[at] = line.replace("(", "(self, ", 1) if is_head else re.sub(r"\b(p\d+)\b", r"self.\1", line)
        inside = [f"def __init__(self): {attributes}", *lines]
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
