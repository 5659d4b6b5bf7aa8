"""What the layout planner is given: variables, and operations that run as one batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Variable:
    """An input, intermediate, output or parameter of a static subgraph.

    Args:
        name: for reports.
        size: entries (or bytes; the planner only adds them up), at least 1.
        space: variables of different spaces (a cell's row, the parameters) are never side by side.
    """

    name: str
    size: int
    space: str = "row"


@dataclass(frozen=True)
class BatchedOp:
    """k operations of one type that run together, in any order unless told otherwise.

    Args:
        name: for reports.
        result: k distinct variables, by index; `result[i]` belongs to operation i.
        operands: tuples of k variables; `operands[j][i]` belongs to operation i.
        ordered: whether operation i has to stand at place i: parts of a concatenation cannot be permuted.
        cost: of copying one entry, relative to other operations; what is dear yields last.
    """

    name: str
    result: tuple[int, ...]
    operands: tuple[tuple[int, ...], ...]
    ordered: bool = False
    cost: int = 1

    def slots(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        """The result, numbered `RESULT`, and the operands, numbered from 0."""
        yield RESULT, self.result
        yield from enumerate(self.operands)


RESULT = -1  # as number of an operand: the result


def slot_name(slot: int) -> str:
    """What reports call a result or an operand."""
    return "result" if slot == RESULT else f"operand {slot}"
