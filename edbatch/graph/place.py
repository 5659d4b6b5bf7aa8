"""The loop that puts blocks into graphs: in C where that was built, else, and where columns are lists, in Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from edbatch.graph.block import ARGUMENTS, DRAW, FIRST, Block, Instances
from edbatch.graph.recorder import place_in_c


def place_in_python(
    graph: Any, blocks: tuple[Block, ...], columns: Sequence[Any], draw: int, instances: Instances | None
) -> int:
    """Append the nodes of instances of blocks to a graph, one after the other; the id of the first.

    Args:
        columns: of arguments; integers that are those of all instances, and arrays (int64) of them.
        draw: the first number that is drawn.
        instances: None: one, of the first block.
    """
    read = [[np.frombuffer(x, np.int64).reshape(-1, 2) for x in block[1:5]] for block in blocks]
    first: int = graph.n
    if instances is None:
        bases = np.array([0, first, draw, *[columns[of] for of in read[0][3][:, 1].tolist()]], np.int64)
        added = [x[:, 0] + bases[x[:, 1]] for x in read[0][:2]]
        _append(graph, [np.frombuffer(blocks[0].types, np.int32), *added], list(blocks[0].lines))
        return first
    given: Any = instances
    results, n = given.results, sum(given.times)
    order = np.arange(n) if given.order is None else given.order
    which = np.zeros(n, np.int32) if given.which is None else given.which[order]
    sizes = [(block.n, len(of[0]), len(of[1]), block.n_draws) for block, of in zip(blocks, read, strict=True)]
    of_each = np.array(sizes, np.int64).reshape(-1, 4)[which]
    begins = np.cumsum(of_each, 0) - of_each  # per step, how much comes before it
    all_bases = []
    for number, (_, _, returned, arguments) in enumerate(read):
        (steps,) = (which == number).nonzero()
        at, bases = order[steps], np.zeros((len(steps), ARGUMENTS + len(arguments)), np.int64)
        bases[:, FIRST], bases[:, DRAW] = first + begins[steps, 0], draw + begins[steps, 3]
        for k, (child, of) in enumerate(arguments.tolist(), ARGUMENTS):
            if child < 0:
                column, ranks = columns[of], given.ranks
                bases[:, k] = column if column.__class__ is int else column[at if ranks is None else ranks[at]]
        if results is not None:
            results[at, : len(returned)] = returned[:, 0] + bases[:, returned[:, 1]]
        all_bases.append((steps, at, bases))
    passed = [_passed_on(*of[2:]) if results is not None else [] for of in read]
    for at, number in zip(order.tolist(), which.tolist(), strict=True) if any(passed) else ():
        for k, added, child, of in passed[number]:
            results[at, k] = added + results[given.children[given.offsets[at] + child], of]
    made = [np.empty(count, np.int64) for count in of_each.sum(0)[:3].tolist()]
    for block, (operands, integers, _, arguments), (steps, at, bases) in zip(blocks, read, all_bases, strict=True):
        for k, (child, of) in enumerate(arguments.tolist(), ARGUMENTS):
            if child >= 0:
                bases[:, k] = results[given.children[given.offsets[at] + child], of]
        values = [np.frombuffer(block.types, np.int32), *(x[:, 0] + bases[:, x[:, 1]] for x in (operands, integers))]
        for found, begin, rows in zip(made, begins[steps].T[:3], values, strict=True):
            found[begin[:, None] + np.arange(rows.shape[-1])] = rows
    noted = which.tolist() if any(block.lines for block in blocks) else []
    _append(graph, made, [line for number in noted for line in blocks[number].lines])
    return first


def _append(graph: Any, columns: list[np.ndarray], lines: list[str]) -> None:
    types, operands, integers = (column.tolist() for column in columns)
    graph.append(types, operands, integers)
    if lines:
        graph.types.lines[-len(lines) :] = lines


def _passed_on(returned: np.ndarray, arguments: np.ndarray) -> list[tuple[int, int, int, int]]:
    """Of results that are a child's: the number, what is added, the child, and which of its results."""
    pairs = enumerate(returned.tolist())
    found = [(k, number, *arguments[base - ARGUMENTS].tolist()) for k, (number, base) in pairs if base >= ARGUMENTS]
    return [one for one in found if one[2] >= 0]


place = place_in_c or place_in_python
