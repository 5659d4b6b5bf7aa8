"""The gradient of one expression after a backward pass: also of what a cell computes inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from edbatch.base.records import records
from edbatch.compiling.array_table import ArrayTable
from edbatch.graph.cell.body import Steps, origin, spec_of_value, steps_to_outputs
from edbatch.graph.cell.derivative import Given
from edbatch.graph.cell.derivative_row import Place
from edbatch.graph.cell.entry import CellOp
from edbatch.graph.cell.trace import ARGUMENT
from edbatch.graph.cell.type_body import body_of_type
from edbatch.graph.model.writes import expect_unwritten
from edbatch.graph.op import Kind
from edbatch.graph.spec import Spec
from edbatch.graph.views import NODE_BITS, NODE_MASK, steps_of
from edbatch.kernels.tables import Memory
from edbatch.memory.plan.addresses import COLUMNS, ROWS, SAVING, SCATTERED, Columns, Rows
from edbatch.memory.plan.format import BATCH, OPERAND, SEGMENT, SLICE, Batch, Operand, Plan
from edbatch.runtime.compile.derivatives import CompiledDerivative, compiled, compiled_outputs
from edbatch.runtime.compile.program import Program
from edbatch.runtime.type_columns import BoundType, DerivedType
from edbatch.runtime.type_table import TypeTable

if TYPE_CHECKING:
    from edbatch.runtime.evaluation import Evaluation


class Made(NamedTuple):
    """Where an expression is computed: its node, and the views that it is seen through.

    Attributes:
        output: of a cell, which of its outputs it is.
        call: if the node is a part that several calls share: the call that is meant, and which of its operands it is.
    """

    node: int
    steps: Steps
    output: int | None
    call: tuple[int, int] | None


class ExpressionGradients:
    """The gradients of the expressions of a graph, given those of its values."""

    def __init__(self, graph: Evaluation) -> None:
        self._graph, self._table = graph, graph.table

    def made(self, ids: np.ndarray) -> tuple[np.ndarray, dict[int, Made]]:
        """The nodes that compute expressions; and, by position, where: of those that not every node of a type does."""
        nodes = ids & NODE_MASK
        kinds = self._graph.nodes.types[nodes]
        ops = [(kind, self._table.bound[kind].type.op) for kind in dict.fromkeys(kinds.tolist())]
        several = [kind for kind, op in ops if isinstance(op, CellOp) or op.kind is Kind.VIEW]
        made = {at: self._made_at(ids.item(at)) for at in np.flatnonzero(np.isin(kinds, several)).tolist()}
        nodes[list(made)] = [one.node for one in made.values()]
        return nodes, made

    def rows(self, ids: np.ndarray, spec: Spec, sets: np.ndarray) -> np.ndarray:
        """The gradients [n, *shape], on the host, of expressions of one spec.

        Args:
            sets: per node that had run, which set of outputs gradients flow into; -1: none.
        """
        found = np.zeros((len(ids), *spec.shape), spec.dtype)
        nodes, made = self.made(ids)
        flows = nodes < len(sets)
        flows[flows] = sets[nodes[flows]] >= 0
        for at, one in made.items():
            if flows[at]:
                found[at] = self._table.backend.to_host(self._gradient(one, sets)[0])
        flows[list(made)] = False
        (direct,) = flows.nonzero()
        for chosen, rows in self._table.rows(ids[direct], self._graph.nodes, self._graph.gradient_rows.of):
            found[direct[chosen]] = rows
        return found

    def _gradient(self, made: Made, sets: np.ndarray) -> Any:
        """The gradient [1, *shape] of an expression."""
        node, live = made.node, self._live(made.node, sets)
        found = self._row(self._graph.gradient_rows.of, node)
        if made.call is not None:  # what flows from one of the nodes that read it
            reader, operand = made.call
            type = self._table.bound[self._graph.nodes.types[reader]]
            needed = [at == operand for at in range(self._graph.nodes.counts[reader])]
            how = compiled(type, needed, False, self._live(reader, sets))
            gradient = self._row(self._graph.gradient_rows.of, reader)
            found = self._computed(how, how.operands[operand], reader, gradient, type.type.operands[operand])
        if made.output is not None:
            found = self._of_output(node, made.output, found, live)
        for op, attributes in made.steps:
            found = op.forward(found, **dict(attributes))
        return found

    def _made_at(self, id: int) -> Made:
        """Where an expression is computed: of a view, what it is a view of.

        A cell may return what it was given, and the last part of a cell that was split what others read earlier.
        """
        node, steps = id & NODE_MASK, steps_of(id >> NODE_BITS)
        call: tuple[int, int] | None = None
        while True:
            type = self._table.bound[self._graph.nodes.types[node]].type
            if type.op.kind is Kind.VIEW:  # a copy, because memory did not allow a view, and still the other
                given = int(self._graph.nodes.args[self._graph.nodes.starts[node]])
                node, steps = given & NODE_MASK, (*steps_of(given >> NODE_BITS), (type.op, type.attributes), *steps)
                continue
            if not isinstance(type.op, CellOp):
                return Made(node, steps, None, None)
            body = type.op.body
            begins = [steps_of(step >> NODE_BITS) for step, _ in steps_to_outputs(body, type.out)]
            output = next(at for at, begin in enumerate(begins) if steps[: len(begin)] == begin)
            (inside, shown), further = origin(body, body.outputs[output]), steps[len(begins[output]) :]
            if body.nodes[inside].type.op is not ARGUMENT:
                return Made(node, further, output, call)
            given = int(self._graph.nodes.args[self._graph.nodes.starts[node] + inside])
            call = (node, inside) if self._is_shared(node, inside, given & NODE_MASK) else None
            node, steps = given & NODE_MASK, (*steps_of(given >> NODE_BITS), *shown, *further)

    def _is_shared(self, node: int, operand: int, part: int) -> bool:
        """Whether an operand of a node is a part of several calls, which look up the same (see `runtime.split`)."""
        nodes = self._graph.nodes
        op = self._table.bound[nodes.types[part]].type.op
        if not isinstance(op, CellOp) or not op.is_early:
            return False
        alike = np.flatnonzero(nodes.types[: nodes.n] == nodes.types[node])
        return int((nodes.args[nodes.starts[alike] + operand] & NODE_MASK == part).sum()) > 1

    def _live(self, node: int, sets: np.ndarray) -> frozenset[int]:
        return self._table.live_outputs.sets[sets[node]].live if sets[node] >= 0 else frozenset()

    def _of_output(self, node: int, output: int, gradient: Any, live: frozenset[int]) -> Any:
        """The gradient [1, *shape] of a cell's output, given what flows to its row from outside: with what flows to it
        inside the cell. `live`: the outputs that gradients flow into."""
        type = self._table.bound[self._graph.nodes.types[node]]
        body = body_of_type(type.type)
        spec = spec_of_value(body, body.outputs[output])
        if _is_only_returned(type, output):
            column = body.columns[output]
            return gradient.reshape(1, -1)[:, column : column + spec.size].reshape(1, *spec.shape)
        how = compiled_outputs(type, live)
        return self._computed(how, how.operands[output], node, gradient, spec)

    def _computed(self, how: CompiledDerivative, place: Place | None, node: int, gradient: Any, spec: Spec) -> Any:
        """What a derivative computes for one node, [1, *shape], at a place of its row; zeros if it computes nothing."""
        nodes, type, backend = self._graph.nodes, self._table.bound[self._graph.nodes.types[node]], self._table.backend
        if place is None or how.program is None:
            return backend.allocate((1, *spec.shape), spec.dtype)
        expect_unwritten(how.reads, next(ran.time for ran in self._graph.ran if node < ran.end.nodes))
        begin, end = int(nodes.starts[node]), int(nodes.starts[node] + nodes.counts[node])
        given = []
        for source, number in how.given:
            if source is Given.OPERAND:
                given.append(self._row(self._graph.arenas.array, int(nodes.args[begin + number])))
            else:
                given.append(self._row(self._graph.arenas.array, node) if source is Given.RESULT else gradient)
        row = backend.allocate((1, how.width), type.type.out.dtype)
        integers = self._graph.integers[nodes.args[end : end + type.type.n_integers]]
        rows = [x if x.flags.c_contiguous else x.copy() for x in given]
        _run_program(how.program, [*rows, row], integers, self._table)
        return row[:, place.column : place.column + spec.size].reshape(1, *spec.shape)

    def _row(self, array: Callable[[int], Any], id: int) -> Any:
        """The row [1, *shape] of an id, of values or of gradients."""
        ((_, window, (row,)),) = self._table.by_window(np.array([id], np.int64), self._graph.nodes)
        return array(window)[row : row + 1]


def _is_only_returned(type: BoundType, output: int) -> bool:
    """Whether a body returns what it computes itself, and reads it nowhere: all that flows there is from outside."""
    key = ("only returned", output)
    if key not in type.derivatives:
        body = body_of_type(type.type)
        read = [value.node for node in body.nodes for value in node.operands] + [x.node for x in body.outputs]
        node, view = body.outputs[output].node, body.outputs[output].view
        is_own = view is None and body.nodes[node].type.op.kind is not Kind.VIEW
        type.derivatives[key] = is_own and read.count(node) == 1
    return type.derivatives[key]


def _run_program(program: Program, rows: list[Any], integers: np.ndarray, table: TypeTable) -> None:
    """Run a program of a table for one node.

    Args:
        rows: [1, *shape] of its arguments, and of its result, which is filled in; contiguous.
    """
    number, programs, backend = table.derived([DerivedType(program, 0)])[0], table.programs, table.backend
    indices, some = np.zeros(0, np.int32), len(rows) - 1
    operands = np.array([Operand(SLICE, at, 0, 1, 0, 1) for at in range(some)], OPERAND)
    batches, read = np.array([Batch(number, 0, 1, 0, 0, -1)], BATCH), np.arange(len(integers), dtype=np.int32)
    plan = ArrayTable(Plan(batches, operands, np.zeros(0, SEGMENT), indices, read))
    memory = Memory(
        records([Columns(at, 0, x.nbytes) for at, x in enumerate(rows)], COLUMNS),
        records([Rows(backend.address(x), x.nbytes) for x in rows], ROWS),
        np.full(table.count, some, np.int32),
        np.zeros(table.count, SAVING),
        np.zeros(0, SCATTERED),
        np.zeros(0, np.int64),
    )
    ready, _held = programs.prepare([number], plan, 0, 1)
    scratch = backend.allocate(ready.scratch, np.dtype(np.uint8), zeros=False)
    lists = backend.lists(plan, np.ascontiguousarray(integers, np.int32))
    backend.run_batches(0, 1, plan, lists, ArrayTable(memory), programs, backend.address(scratch))
