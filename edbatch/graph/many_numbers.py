"""Numbers that are part of a type, where they are other ones in every mini-batch."""

from __future__ import annotations

from typing import Any

from edbatch.errors import goes_on, warn
from edbatch.graph.columns import Columns
from edbatch.graph.op import Op

#: How many different numbers an op may be given for one attribute, or a cell by keyword, until it is said: each of a
#: dozen layers may have one, and in a graph that has more it is said while it is recorded, before any is compiled.
MANY = 13


def note_numbers(graph: Columns, op: Op, attributes: dict[str, Any]) -> None:
    """Count the numbers that make types of an op which users record; one of very many warns, once.

    Each type has kernels of its own. An annealed slope, margin or rate therefore has some compiled in every mini-batch,
    while a number that is an operand costs nothing. Cells, which are traced anew for each, say so themselves.
    """
    if graph.inlines:
        return
    for name, value in attributes.items():
        if value.__class__ is float and goes_on((op, name), value, MANY):
            warn(
                f"{op.name}: {name} has been {MANY} different numbers. Each makes another type of node, with kernels "
                "of its own that take about a tenth of a second to compile. Give a number that changes as an operand "
                "(x ** eb.scalar(p), or with +, *, maximum, minimum and where), or take only a few of its values"
            )
