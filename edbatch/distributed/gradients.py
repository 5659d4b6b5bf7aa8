"""What workers send one another: gradients, of dense parameters whole and of tables as rows.

Each worker gets the gradients of all, and adds them up in the order of the workers: all have the same bits, in one
round. Parameters without a gradient are not sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np

from edbatch.graph.model.collection import ParameterCollection
from edbatch.graph.model.parameters import LookupParameters


class Gradients(NamedTuple):
    """Of one worker's part of a mini-batch.

    Attributes:
        dense: by name.
        rows: of tables by name: rows, ascending, and their gradients.
        loss: sum of the losses; and n, how many there are.
    """

    dense: dict[str, np.ndarray]
    rows: dict[str, tuple[np.ndarray, np.ndarray]]
    loss: float
    n: int

    @property
    def bytes(self) -> int:
        """That are sent to each of the others."""
        return sum(x.nbytes for x in (*self.dense.values(), *(y for pair in self.rows.values() for y in pair)))


def collected(model: ParameterCollection, loss: float, n: int) -> Gradients:
    """The gradients that have come.

    Example:
        >>> import edbatch as eb
        >>> model = eb.ParameterCollection()
        >>> W, embed = model.add_parameters(2, name="W"), model.add_lookup_parameters((9, 2), name="embed")
        >>> W.set_grad([1, 2])
        >>> embed.add_rows(np.array([4]), np.ones((1, 2), np.float32))
        >>> found = collected(model, 0.5, 1)
        >>> take(model, [found, found])
        >>> W.grad(), embed.sparse_grad()
        (array([2., 4.], dtype=float32), (array([4]), array([[2., 2.]], dtype=float32)))
    """
    given = {name: x for name, x in model.items() if x.has_grad}
    tables = {name: x for name, x in given.items() if isinstance(x, LookupParameters)}
    rows = {name: found for name, x in tables.items() if (found := x.sparse_grad()) is not None}
    return Gradients({name: x.grad() for name, x in given.items() if name not in tables}, rows, loss, n)


def take(model: ParameterCollection, of_all: Sequence[Gradients]) -> None:
    """Have the sums of these gradients, and no others."""
    for name, x in model.items():
        x.zero_grad()
        if dense := [of_one.dense[name] for of_one in of_all if name in of_one.dense]:
            x.set_grad(reduce(np.add, dense))
        for rows, values in (of_one.rows[name] for of_one in of_all if name in of_one.rows):
            x.add_rows(rows, x.device.backend.from_host(values, "C"))
