"""Cells compiled: the body of a cell as steps over a batch of calls."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from edbatch.errors import EdBatchError
from edbatch.graph.cell.body import Body, Value, joined, parameter_in, spec_of_value
from edbatch.graph.cell.passes import open_lists, rows_for_steps, with_own_outputs
from edbatch.graph.cell.passes.entries import in_order
from edbatch.graph.cell.passes.fuse import Run, alone, fuse, is_fusible
from edbatch.graph.cell.type_body import body_of_type
from edbatch.graph.model.parameters import LookupParameters
from edbatch.graph.node_type import NodeType
from edbatch.graph.op import Kind
from edbatch.graph.ops.shape import EMBED, TRANSPOSE
from edbatch.graph.spec import ParameterSpec
from edbatch.kernels.backend import Backend
from edbatch.kernels.program import ONE_BLOCK
from edbatch.runtime.compile.call_step import call_step
from edbatch.runtime.compile.fused_steps import fused_step
from edbatch.runtime.compile.lengths import made_for
from edbatch.runtime.compile.link import Link
from edbatch.runtime.compile.placed_steps import placed_steps
from edbatch.runtime.compile.places import RESULT, SAVED, Parts, Row, parts_of, place_values
from edbatch.runtime.compile.side_by_side import gathered, moved
from edbatch.runtime.compile.steps import CellStep, copy_step, product_steps
from edbatch.runtime.compile.tables import Tables

# A batch is cut into blocks of calls whose intermediates have room (`Backend.block_bytes`). But a product of a block
# brings its weights into another order first, unless they are small, and that has to be little beside the product.
# Measured for TreeLSTM, batch 256, in ms: hidden 512: 128 rows 437, 512 rows 383, 1024 rows 376; hidden 256: 99, 92,
# 96; hidden 64: 18.9, 19.1, 19.7.
ENTRIES_PER_ROW = 640
LEAST_ROWS, MOST_ROWS = 128, 1024


FORWARD, SAVING = "forward", "saving"  # what computes the nodes of a type, and what saves values on the way
Computed = tuple[Any, Body]  # what is to be known of a program besides, and what it computes


class Program:
    """A compiled cell: from its arguments' rows and integers to rows of its result.

    Every intermediate value has a part of a scratch buffer, [calls, *shape], from the step that computes it to the last
    that reads it.

    Args:
        what: it computes of the type: a key, the same for all types.
        computed: of a type; a body without outputs has no tables.
        plain: no pass that only saves time is made.
    """

    def __init__(
        self, type: NodeType, what: Hashable, computed: Callable[[NodeType], Computed], backend: Backend, plain: bool
    ) -> None:
        self._type, self._what, self._computed, self._backend, self._plain = type, what, computed, backend, plain
        self._made: tuple[Any, Tables | None] | None = None

    def made(self) -> tuple[Any, Tables | None]:
        """What is to be known of it, and its tables; made anew where the storage of a parameter has changed.

        Raises:
            EdBatchError: a parameter is gone.
        """
        if self._made is None or not _is_right(self._made):
            self._made = made_for(self._type, (self._what, self._plain, self._backend), self._make, _is_right)
        return self._made

    def tables(self) -> Tables:
        """What the interpreter reads, see `Tables.held`."""
        tables = self.made()[1]
        assert tables is not None
        return tables

    def _make(self, type: NodeType) -> tuple[Any, Tables | None]:
        """The same of a type of this structure."""
        parts = gathered(type) if self._what == FORWARD else None
        if parts is not None:
            rest = None if parts[0] is None else self._turned(parts[0])
            return None, moved([operand.size for operand in type.operands], type.out, rest)
        known, body = self._computed(type)
        if not body.outputs:
            return known, None
        if len(body.arguments) == 1 and body.outputs == (Value(0),):
            return known, moved([body.arguments[0].size], body.arguments[0])
        last = body.nodes[-1]
        if last.type.op is TRANSPOSE and last.operands == (Value(0),) and body.outputs == (Value(1),):
            return known, self._turned(last.type)
        return known, self._tables_of(type, body)

    def _turned(self, type: NodeType) -> Tables:
        """The tables of a transposition, by itself or as a part of this: lengths are found from others."""
        what = "turned", self._plain, self._backend
        return made_for(type, what, lambda of: self._tables_of(of, body_of_type(of)))

    def _tables_of(self, type: NodeType, body: Body) -> Tables:
        # What puts parts together, or takes them apart, has no kernel of all of them: each number would have its own.
        plain = self._plain or self._type.op.places is not None
        rows: tuple[tuple[Row, int], ...] = ((RESULT, 0),)
        if self._what == SAVING:
            rows = *rows, (SAVED, type.out.size)
        elif self._what != FORWARD and type.lists:  # gradients, which are of nodes, or of elements
            rows = tuple([(f"gradient {number}", column) for number, column in enumerate(body.columns)])
        return tables_of(body, self._backend, plain, rows)


def _is_right(made: tuple[Any, Tables | None]) -> bool:
    """Whether parameters lie where they did."""
    return made[1] is None or made[1].held() is not None


def tables_of(body: Body, backend: Backend, plain: bool, rows: tuple[tuple[Row, int], ...]) -> Tables:
    """The tables of a program.

    Args:
        rows: what is written for a call, as of `Parts`.
        plain: whether each node has a kernel of its own; else runs of several have one.
    """
    body = rows_for_steps(open_lists(body))
    if any(spec.each for spec in body.arguments):
        body = with_own_outputs(body)
    elif any(node.type.out.each for node in body.nodes):
        raise EdBatchError("segments of a list: expected them in what an op over lists is written with")
    # A value that is returned as it is computed is computed right there; the others are copied at the end.
    in_result: dict[int, int] = {}
    copied: list[tuple[int, Value]] = []
    for column, value in joined(body, zip(body.columns, body.outputs, strict=True)):
        computed = body.nodes[value.node].type.op.kind is not Kind.SOURCE
        whole = in_order(value.view)
        if whole and computed and value.node not in in_result:
            in_result[value.node] = column
        elif in_result.get(value.node) != column or not whole:
            copied.append((column, value))
    sizes = {at: spec_of_value(body, value).size for at, value in zip(body.columns, body.outputs, strict=True)}
    width = sum(sizes.values())
    parts = parts_of(body, in_result, rows)
    steps = _steps_of(body, plain, parts)
    steps += [copy_step(value, spec_of_value(body, value).size, column) for column, value in copied]
    begins, widths = place_values(body, steps, parts)
    weights = [
        spec.size
        for node in body.nodes
        if not node.type.op.picks  # which reads a row
        for operand in node.operands
        if (spec := parameter_in(body.nodes, operand)) is not None and len(spec.shape) == 2 and not is_table(spec)
    ]
    calls = any(node.type.op.call is not None for node in body.nodes)
    least = ONE_BLOCK if calls else min(MOST_ROWS, max(LEAST_ROWS, max(weights) // ENTRIES_PER_ROW)) if weights else 1
    return Link(body, parts, begins, widths, backend).tables(steps, width, least)


def _steps_of(body: Body, plain: bool, parts: Parts) -> list[CellStep]:
    """The steps that compute every node."""
    computed: list[Run | int] = [
        number for number, node in enumerate(body.nodes) if node.type.op.kind is not Kind.SOURCE
    ]
    steps: list[CellStep] = []
    for item in computed if plain else fuse(body):
        if isinstance(item, Run):
            steps.append(fused_step(body, item, parts))
            continue
        node = body.nodes[item]
        if is_fusible(node):
            steps.append(fused_step(body, alone(body, item), parts))
        else:
            if node.type.out.each and node.type.op.places is None and node.type.op is not EMBED:
                raise EdBatchError(f"{node.type} of each element of a list: expected element-wise ops, or reductions")
            if node.type.op.call is not None:
                steps.append(call_step(body, item))
                continue
            found = placed_steps(body, item, parts.homes)
            steps += product_steps(body, item) if found is None else found
    return steps


def is_table(spec: ParameterSpec) -> bool:
    """Whether it is looked up in."""
    return isinstance(spec.parameter(), LookupParameters)
