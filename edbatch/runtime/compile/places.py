"""Where the values of a cell's body lie while it runs."""

from __future__ import annotations

from typing import Literal, NamedTuple

from edbatch.graph.cell.body import Body, Value, operands_of
from edbatch.graph.cell.passes.fuse import is_fusible
from edbatch.graph.cell.passes.rows_for_steps import PRODUCTS
from edbatch.graph.cell.trace import ARGUMENT
from edbatch.graph.op import Kind
from edbatch.runtime.compile.steps import CellStep, columns_of

Row = Literal["result", "saved"]  # of a cell's call


class Place(NamedTuple):
    """Rows in a scratch buffer: of m calls, from entry m * begin on, `stride` entries apart, at `column` of each."""

    begin: int
    column: int
    stride: int


class Parts(NamedTuple):
    """Values that are computed, or gathered, right where they are wanted.

    Attributes:
        in_result: nodes that are part of the cell's result, and their column there; of what is saved, after these.
        width: entries of a row of the result.
        homes: per node that is part of a concatenation's value, the concatenation's node and the column in it.
    """

    in_result: dict[int, int]
    homes: dict[int, tuple[int, int]]
    width: int

    def root(self, node: int) -> tuple[int, int]:
        """The node of whose row a node's value is part in the end, and the first column."""
        column = 0
        while node in self.homes:
            node, more = self.homes[node]
            column += more
        return node, column

    def whole(self, node: int) -> tuple[int | Row, int]:
        """The same; or of which row of the cell it is part, and the column there."""
        root, column = self.root(node)
        return self.row(self.in_result[root] + column) if root in self.in_result else (root, column)

    def row(self, column: int) -> tuple[Row, int]:
        """The row that a column of the result is in, with what is saved behind it, and the column there."""
        return ("result", column) if column < self.width else ("saved", column - self.width)


def parts_of(body: Body, in_result: dict[int, int], width: int) -> Parts:
    """The parts of a cell, given the nodes that are computed right in its result, and this row's entries."""
    homes: dict[int, tuple[int, int]] = {}
    for number, node in enumerate(body.nodes):
        if node.type.op.kind is Kind.SOURCE:
            continue
        columns = columns_of(body, node) or []
        for operand, (column, _) in zip(operands_of(node), columns, strict=bool(columns)):
            if not isinstance(operand, Value) or operand.view is not None or operand.node in in_result:
                continue
            type = body.nodes[operand.node].type
            computed = type.op is ARGUMENT or type.op.name in PRODUCTS or is_fusible(body.nodes[operand.node])
            if computed and len(type.out.shape) == 1:
                homes.setdefault(operand.node, (number, column))
    return Parts(in_result, homes, width)


def place_values(body: Body, steps: list[CellStep], parts: Parts) -> tuple[dict[int, Place], int]:
    """Where each argument (if it has to be moved) and intermediate value lies, and the buffer's entries per call.

    A place is used again for a value of the same size once its value has been read for the last time.
    """
    before = -1  # arguments are moved before the first step
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for number, step in enumerate(steps):
        for operand in step.operands:
            if isinstance(operand, Value):
                root = parts.root(operand.node)[0]
                last[root] = number
                if body.nodes[operand.node].type.op is ARGUMENT:
                    first[root] = before
        for node in step.computes:
            root = parts.root(node)[0]
            first.setdefault(root, number)
            last[root] = max(number, last.get(root, number))
    for node in parts.homes:  # arguments in a concatenation that needs no step
        if body.nodes[node].type.op is ARGUMENT:
            first[parts.root(node)[0]] = before
    begin_at: dict[int, list[int]] = {}
    end_at: dict[int, list[int]] = {}
    for found, at_step in ((first, begin_at), (last, end_at)):
        for root, number in found.items():
            at_step.setdefault(number, []).append(root)
    begins: dict[int, int] = {}
    free: dict[int, list[int]] = {}
    width = 0
    for number in range(before, len(steps)):
        for root in [root for root in begin_at.get(number, ()) if root not in parts.in_result]:
            size = body.nodes[root].type.out.size
            if free.get(size):
                begins[root] = free[size].pop()
            else:
                begins[root] = width
                width += size
        for root in [root for root in end_at.get(number, ()) if root in begins]:
            free.setdefault(body.nodes[root].type.out.size, []).append(begins[root])
    places = {root: Place(begin, 0, body.nodes[root].type.out.size) for root, begin in begins.items()}
    for node in parts.homes:
        root, column = parts.root(node)
        if root in begins:
            places[node] = Place(begins[root], column, body.nodes[root].type.out.size)
    return places, width
