"""Programs in which what stands side by side is a function that is replayed, and called twice."""

import re
from dataclasses import dataclass
from itertools import groupby

from tests.fuzz.program import NAME, Program

_RECORDS = re.compile(r"(with (?:.*, )?g\d+: )((?:v\d+, )*v\d+) = (.*)")


@dataclass(frozen=True)
class Replayed(Program):
    """The same program, but that each run of statements that only record is a function."""

    def source(self) -> str:
        """What runs."""
        lines = super().source().split("\n")
        found, number = [], 0
        for place, group in groupby(lines, lambda line: match[1] if (match := _RECORDS.fullmatch(line)) else None):
            if place is None:
                found += group
            else:
                found += _function(f"r{number}", place, [_RECORDS.fullmatch(line).groups()[1:] for line in group])
                number += 1
        return "\n".join(found)


def _function(name, place, statements):
    made, given = [], {}
    for left, right in statements:
        given |= dict.fromkeys(x for x in NAME.findall(right) if x.startswith("v") and x not in made)
        made += NAME.findall(left)
    arguments = ", ".join(given)
    body = [f"    {left} = {right}" for left, right in statements]
    call = f"{place}{', '.join(made)}, = {name}({arguments})"
    return ["@eb.replay", f"def {name}({arguments}):", *body, f"    return {', '.join(made)},", call, call]
