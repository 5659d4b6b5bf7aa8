"""Programs whose graphs were recorded before with other words, labels and masks: their structures are known."""

import re
from dataclasses import dataclass

from tests.fuzz.program import NAME, Program

_MADE = re.compile(r"(?:with .*: )?(g\d+) = eb\.Graph\(.*")
_RECORDS = re.compile(r"with (?:.*, )?(g\d+): ((?:v\d+, )*v\d+) = .*")
_INTEGERS = [
    re.compile(rf"({call}, )-?\d+\b")
    for call in (r"eb\.(?:lookup|pick|cross_entropy)\(\w+", r"eb\.dropout\(\w+, [\d.]+")
]
_WORD, _OF_CELL = re.compile(r"(\be\d+\[)-?\d+\]"), re.compile(r"(\bf\d+\(.*)")


@dataclass(frozen=True)
class Retold(Program):
    """The same program, but that each graph was recorded and run, and gone back through, twice before with zeros."""

    def source(self) -> str:
        """What runs."""
        lines = super().source().split("\n")
        models = [f"{name}.zero_grad()" for name in sorted(set(re.findall(r"^(m\d+) = ", "\n".join(lines), re.M)))]
        found: list[str] = []
        told: dict[str, list[str]] = {}  # of graphs that have not run yet, what was recorded
        is_first = True  # no gradient has come, that would be forgotten with those that have come before
        for line in lines:
            match = _MADE.fullmatch(line) or _RECORDS.fullmatch(line)
            if match:
                if match[1] in told or _MADE.fullmatch(line):
                    told.setdefault(match[1], []).append(_with_zeros(line))
            elif line and not line.startswith((" ", "@", "def ", "class ")) and told:
                for graph in list(told):
                    found += _function(graph, told.pop(graph), line, models if is_first else None)
                is_first &= "grad" not in line and "backward" not in line
            found.append(line)
        return "\n".join(found)


def _function(graph, recorded, line, models):
    """The definition of a function that records, and goes on as the program does, and two calls.

    Args:
        models: statements that forget gradients; None: none may come.
    """
    names = {name for one in recorded for name in NAME.findall(one.split(" = ")[0])}
    is_own = ".backward(" in line and set(re.findall(r"\bv\d+\b", line)) <= names and "for " not in line
    body = [*recorded, line if is_own and models is not None else f"{graph}.run()", *(models or ())]
    return [f"def again_{graph}():", *("    " + one for one in body), f"again_{graph}()", f"again_{graph}()"]


def _with_zeros(line):
    """With zeros for the integers that are no part of a node's type."""
    for pattern in _INTEGERS:
        line = pattern.sub(r"\g<1>0", line)
    line = _WORD.sub(r"\g<1>0]", line)
    return _OF_CELL.sub(lambda match: re.sub(r", \d+(?=[,)])", ", 0", match[1]), line)
