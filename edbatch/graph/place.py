"""The loop that puts blocks into graphs: in C where that was built, else, and where columns are lists, in Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from edbatch.graph.block import Block, Instances
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
    read = [[np.frombuffer(x, np.int64).reshape(-1, 2).tolist() for x in block[1:5]] for block in blocks]
    given: Any = instances or Instances([1])
    results, first = given.results, graph.n
    for at in range(sum(given.times)) if given.order is None else given.order.tolist():
        rank = at if given.ranks is None else given.ranks[at]
        number = 0 if given.which is None else given.which[at]
        block, (*nodes, returned, arguments) = blocks[number], read[number]
        bases = [0, graph.n, draw]
        for child, of in arguments:
            if child >= 0:
                bases.append(int(results[given.children[given.offsets[at] + child], of]))
            else:
                bases.append(columns[of] if columns[of].__class__ is int else int(columns[of][rank]))
        operands, integers = ([number + bases[base] for number, base in pairs] for pairs in nodes)
        graph.append(np.frombuffer(block.types, np.int32).tolist(), operands, integers)
        if block.lines:
            graph.types.lines[-block.n :] = block.lines
        if results is not None:
            results[at, : len(returned)] = [number + bases[base] for number, base in returned]
        draw += block.n_draws
    return int(first)


place = place_in_c or place_in_python
