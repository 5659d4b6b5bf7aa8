"""Batches that would have to copy an operand, taken apart: a kernel more costs less than a gather before it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from edbatch.graph.cell.batches import is_product
from edbatch.graph.cell.body import Body, Value, operands_of
from edbatch.graph.spec import ParameterSpec

Key = Value | ParameterSpec


def split_repeats(body: Body, batches: Sequence[Sequence[int]]) -> list[list[int]]:
    """Split batches in which an operand repeats some value, so that in each part it does not, or is one value.

    `r1 * h1, r2 * h2, z1 * h1, z2 * h2` becomes `r1 * h1, r2 * h2` and `z1 * h1, z2 * h2`: no layout has h1 twice.
    """
    found: list[list[int]] = []
    for batch in batches:
        rest = list(batch)
        while rest:
            part = _without_repeats(body, rest)
            found.append(part)
            rest = [number for number in rest if number not in part]
    return found


def split_clashing(body: Body, batches: Sequence[Sequence[int]], clashing: Collection[int]) -> list[list[int]]:
    """Take the batches at positions `clashing` apart, but for products: one kernel for k nodes takes k copies."""
    found: list[list[int]] = []
    for at, batch in enumerate(batches):
        apart = at in clashing and not is_product(body.nodes[batch[0]])
        found += [[number] for number in batch] if apart else [list(batch)]
    return found


def _without_repeats(body: Body, batch: Sequence[int]) -> list[int]:
    """The first of a batch, and what can join it."""
    rows = {number: operands_of(body.nodes[number]) for number in batch}
    shared = [len(set(column)) == 1 for column in zip(*rows.values(), strict=True)]
    seen: list[set[Key]] = [set() for _ in shared]
    part = []
    for number, row in rows.items():
        if not any(key in before for key, before, one in zip(row, seen, shared, strict=True) if not one):
            part.append(number)
            for key, before in zip(row, seen, strict=True):
                before.add(key)
    return part
