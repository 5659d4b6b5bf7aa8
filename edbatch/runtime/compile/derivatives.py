"""Derivatives compiled: what goes back through a batch of one type, and what its forward run saves for that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from edbatch.graph.cell.body import Value
from edbatch.graph.cell.derivative import Derivative, derivative, output_gradients, worth_saving
from edbatch.graph.cell.entry import CellOp
from edbatch.graph.cell.type_body import body_of_type, columns_of_type
from edbatch.graph.node_type import NodeType
from edbatch.graph.spec import ParameterSpec, Spec
from edbatch.kernels.backend import Backend
from edbatch.runtime.bound_type import BoundType
from edbatch.runtime.compile.program import Program


@dataclass(frozen=True)
class CompiledDerivative:
    """The derivative of a type, ready to run.

    Args:
        derivative: what is computed of what.
        program: fills rows [nodes, width]; None if there is nothing to compute.
        reads: the parameters whose values it needs.
    """

    derivative: Derivative
    program: Program | None
    reads: frozenset[ParameterSpec]


@dataclass(frozen=True)
class Saving:
    """The forward computation of a cell that keeps intermediate values.

    Args:
        program: fills rows [calls, width]: the row of the result, and after it what is saved.
        places: per saved node of the body, where it begins in a row, and its spec.
        width: entries of a row.
    """

    program: Program
    places: dict[int, tuple[int, Spec]]
    width: int


def compiled(
    type: BoundType, needed: Sequence[bool], saving: bool, live: frozenset[int], backend: Backend
) -> CompiledDerivative:
    """What goes back through nodes of a type.

    Args:
        needed: per operand that is a node, whether its gradient is asked for.
        saving: whether the forward run has saved what is worth it.
        live: the outputs that gradients flow into, by number.
    """
    key = (tuple(needed), saving, live)
    found = type.derivatives.get(key)
    if found is None:
        body, row, steps = body_of_type(type.type)
        saved = _saved(type) if saving else ()
        found = type.derivatives[key] = _compiled(derivative(body, row, steps, needed, saved, live), backend)
    return found


def saving(type: BoundType, backend: Backend) -> Saving | None:
    """How nodes of a type run when a backward run will follow; None if nothing is worth saving."""
    if "saving" not in type.derivatives:
        saved = _saved(type)
        type.derivatives["saving"] = _saving(type.type, saved, backend) if saved else None
    return type.derivatives["saving"]


def compiled_outputs(type: BoundType, live: frozenset[int], backend: Backend) -> CompiledDerivative:
    """What flows to the results of a cell, from outside and inside; see `graph.cell.derivative.output_gradients`."""
    key = ("outputs", live)
    found = type.derivatives.get(key)
    if found is None:
        found = type.derivatives[key] = _compiled(output_gradients(*body_of_type(type.type), live), backend)
    return found


def _saved(type: BoundType) -> tuple[int, ...]:
    if not isinstance(type.type.op, CellOp) and type.type.op.composite is None:
        return ()  # its one value is its result
    if "saved" not in type.derivatives:
        type.derivatives["saved"] = worth_saving(*body_of_type(type.type))
    return type.derivatives["saved"]


def _compiled(found: Derivative, backend: Backend) -> CompiledDerivative:
    program = Program(found.body, found.columns, backend) if found.body.outputs else None
    specs = [spec for node in found.body.nodes for spec in (*node.type.operands, *dict(node.type.attributes).values())]
    return CompiledDerivative(found, program, frozenset(spec for spec in specs if isinstance(spec, ParameterSpec)))


def _saving(type: NodeType, saved: tuple[int, ...], backend: Backend) -> Saving:
    body = body_of_type(type)[0]
    width = type.out.size
    places = {}
    for number in saved:
        spec = body.nodes[number].type.out
        places[number] = width, spec
        width += spec.size
    body = replace(body, outputs=(*body.outputs, *map(Value, saved)))
    columns = (*columns_of_type(type), *(column for column, _ in places.values()))
    return Saving(Program(body, columns, backend), places, width)
