"""Where the values of a cell's body lie while it runs."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from edbatch.graph.cell.body import Body, Node
from edbatch.graph.cell.passes.fuse import is_contiguous, is_fusible
from edbatch.graph.cell.passes.rows_for_steps import PRODUCTS
from edbatch.graph.cell.trace import ARGUMENT
from edbatch.graph.cell.type_body import places_of
from edbatch.graph.op import Kind
from edbatch.memory.plan.windows import contiguous_columns
from edbatch.runtime.compile.steps import CellStep

Row = str  # of a call: of its result, of what it saves, or the gradient of an operand
RESULT, SAVED = "result", "saved"


class Parts(NamedTuple):
    """Values that are computed, or gathered, right where they are wanted.

    Attributes:
        in_result: nodes that are part of what is written for a call, and their columns there.
        rows: what is written for a call, and the column that it begins at.
        homes: per node that is part of a concatenation's value, the concatenation's node and the column in it.
    """

    in_result: dict[int, int]
    homes: dict[int, tuple[int, int]]
    rows: tuple[tuple[Row, int], ...]

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
        """The row that a column of all that is written is in, and the column there."""
        row, begin = next((row, begin) for row, begin in reversed(self.rows) if begin <= column)
        return row, column - begin


def parts_of(body: Body, in_result: dict[int, int], rows: tuple[tuple[Row, int], ...]) -> Parts:
    """The parts of a cell, given the nodes that are computed right in its rows, and these."""
    homes: dict[int, tuple[int, int]] = {}
    for number, node in enumerate(body.nodes):
        if node.type.op.kind is Kind.SOURCE:
            continue
        columns = _columns_of(body, node) or []
        for operand, (column, _) in zip(node.operands, columns, strict=bool(columns)):
            if operand.view is not None or operand.node in in_result:
                continue
            type = body.nodes[operand.node].type
            computed = type.op is ARGUMENT or type.op.name in PRODUCTS or is_fusible(body.nodes[operand.node])
            if computed and len(type.out.shape) == 1:
                homes.setdefault(operand.node, (number, column))
    return Parts(in_result, homes, rows)


def _columns_of(body: Body, node: Node) -> list[tuple[int, int]] | None:
    """Of a node that only puts its operands side by side: where each goes, (column, width); None of any other.

    None, too, if an operand does not lie row by row, or goes to entries that do not follow one another, or if there is
    a row for each element of a list.
    """
    parts = places_of(node.type)
    if parts is None or node.type.out.each or not all(is_contiguous(body.nodes, operand) for operand in node.operands):
        return None
    whole = np.empty((2, *node.type.out.shape), np.float32)
    columns = [contiguous_columns(whole, part) for part in parts(whole)]
    return columns if all(width for _, width in columns) else None


def place_values(body: Body, steps: list[CellStep], parts: Parts) -> tuple[dict[int, int], tuple[int, int]]:
    """Where in a scratch buffer the rows of values begin, and the buffer's entries, of a call, and of an element.

    They are arguments, if they have to be moved, and intermediate values: of m calls, from entry m * `begin` on. Where
    there is a row for each element of lists: behind the rows of calls, from entry `begin` times elements on.

    A place is used again for a value of the same size once its value has been read for the last time.
    """
    before = -1  # arguments are moved before the first step
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for number, step in enumerate(steps):
        read = [operand.node for operand in step.operands]
        for node in (*read, *step.computes):
            op, root = body.nodes[node].type.op, parts.root(node)[0]
            if op is ARGUMENT:
                first[root] = before
            elif op.kind is not Kind.SOURCE:
                first.setdefault(root, number)
            last[root] = number
    for node in parts.homes:  # arguments in a concatenation that needs no step
        if body.nodes[node].type.op is ARGUMENT:
            first[parts.root(node)[0]] = before
    begin_at, end_at = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
    for root, number in first.items():
        if root not in parts.in_result:
            begin_at[number].append(root)
            end_at[last.get(root, len(steps))].append(root)
    begins: dict[int, int] = {}
    free = defaultdict[tuple[int, bool], list[int]](list)
    widths = [0, 0]
    for number in range(before, len(steps)):
        for root in begin_at[number]:
            out = body.nodes[root].type.out
            if free[out.size, out.each]:
                begins[root] = free[out.size, out.each].pop()
            else:
                begins[root] = widths[out.each]
                widths[out.each] += out.size
        for root in end_at[number]:
            out = body.nodes[root].type.out
            free[out.size, out.each].append(begins[root])
    return begins, (widths[0], widths[1])
