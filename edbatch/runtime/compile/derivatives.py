"""Derivatives compiled: what goes back through a batch of one type, and what its forward run saves for that."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import accumulate
from typing import NamedTuple

from edbatch.graph.cell.body import Body, Node, Value
from edbatch.graph.cell.derivative import (
    Derivative,
    Given,
    Term,
    derivative,
    worth_saving,
)
from edbatch.graph.cell.derivative_row import Place
from edbatch.graph.cell.entry import CellOp
from edbatch.graph.cell.passes.entries import in_order
from edbatch.graph.cell.trace import argument_type
from edbatch.graph.cell.type_body import body_of_type
from edbatch.graph.node_type import NodeType
from edbatch.graph.spec import ParameterSpec, Spec
from edbatch.runtime.compile.program import SAVING, Computed, Program
from edbatch.runtime.compile.side_by_side import gathered
from edbatch.runtime.type_columns import BoundType


class CompiledDerivative(NamedTuple):
    """The derivative of a type, ready to run.

    Attributes:
        width, given, operands, terms: as of a `Derivative`.
        reads: the parameters whose values it needs.
        program: fills rows [nodes, width]; None if there is nothing to compute.
    """

    width: int
    given: tuple[tuple[Given, int], ...]
    operands: tuple[Place | None, ...]
    terms: tuple[Term, ...]
    reads: frozenset[ParameterSpec]
    program: Program | None = None


class Saving(NamedTuple):
    """The forward computation of a cell that saves intermediate values, in rows [calls, width].

    Attributes:
        places: per saved node of the body, where it begins in a row, and its spec.
        window: of the rows.
    """

    program: Program
    places: dict[int, tuple[int, Spec]]
    window: int


def compiled(type: BoundType, needed: Sequence[bool], saving: bool, live: frozenset[int]) -> CompiledDerivative:
    """What goes back through nodes of a type.

    Args:
        needed: per operand that is a node, whether its gradient is asked for.
        saving: whether the forward run has saved what is worth it; live: the outputs that gradients flow into.
    """

    def found(of: NodeType) -> Derivative:
        placed = placed_derivative(of, needed)
        if placed is not None:
            return placed
        body = body_of_type(of)
        saved, known = _saved(of) if saving else ((), None)
        if known is not None and not type.plain and all(needed) and len(live) == len(body.outputs):
            return known
        whole = derivative(body, of.out, needed, saved, live, type.plain)
        return _each_by_itself(whole, [spec.each for spec in body.arguments]) if of.lists else whole

    return _compiled(type, (tuple(needed), saving, live), found)


def _each_by_itself(found: Derivative, lists: Sequence[bool]) -> Derivative:
    """The derivative of an op over lists: rows are of nodes, or of elements, so that gradients do not share them.

    One that is the result's, for each element of a list, is not computed: its column is -1.

    Args:
        lists: per operand, whether it is a list.
    """
    body = found.body
    at = dict(zip(body.columns, body.outputs, strict=True))
    operands, outputs, columns, width = list[Place | None](), list[Value](), list[int](), 0
    for place, is_list in zip(found.operands, lists, strict=True):
        value = None if place is None else at[place.column]
        if place is None or value is None:
            operands.append(None)
            continue
        is_gradient = value.node < len(found.given) and found.given[value.node][0] is Given.GRADIENT
        if is_list and is_gradient and in_order(value.view):
            operands.append(Place(-1, place.spec))
            continue
        operands.append(Place(width, place.spec))
        outputs.append(value)
        columns.append(width)
        width += place.spec.size
    body = body._replace(outputs=tuple(outputs), columns=tuple(columns))
    return found._replace(body=body, width=width, operands=tuple(operands))


def saving(type: BoundType) -> Saving | None:
    """How nodes of a type run when a backward run will follow; None if nothing is worth saving."""
    if SAVING not in type.derivatives:
        found = None
        if has_body(type.type):
            program = Program(type.type, SAVING, _saving_body, type.backend, type.plain)
            places, width = program.made()[0]
            if places:
                found = Saving(program, places, type.windows.own(width, type.type.out.dtype))
        type.derivatives[SAVING] = found
    known: Saving | None = type.derivatives[SAVING]
    return known


def compiled_outputs(type: BoundType, live: frozenset[int]) -> CompiledDerivative:
    """What flows to the results of a cell, from outside and inside; see `graph.cell.derivative.derivative`."""

    def found(of: NodeType) -> Derivative:
        body = body_of_type(of)
        return derivative(body, of.out, [True] * len(body.arguments), (), live, type.plain, of_outputs=True)

    return _compiled(type, ("outputs", live), found)


def _saved(type: NodeType) -> tuple[tuple[int, ...], Derivative | None]:
    """The nodes of a type's body that are worth saving; and the derivative, if that is known from this."""
    if not has_body(type):
        return (), None  # its one value is its result
    if type.saved is None:
        type.saved = worth_saving(body_of_type(type), type.out)
    found: tuple[tuple[int, ...], Derivative | None] = type.saved
    return found


def has_body(type: NodeType) -> bool:
    """Whether nodes of a type compute anything besides their results; that of lists is not saved."""
    return isinstance(type.op, CellOp) or (type.op.composite is not None and not type.lists)


def placed_derivative(type: NodeType, needed: Sequence[bool]) -> Derivative | None:
    """The derivative of a type that only puts nodes side by side, which is the result's gradient; None of any other.

    It is what `derivative` finds, but for the gradients that are not needed. That records a view for each operand, and
    there may be thousands.
    """
    parts = gathered(type)
    if parts is None:
        return None
    columns = accumulate([operand.size for operand in type.operands], initial=0)
    places = zip(map(Place, columns, type.operands), needed, strict=True)
    operands = tuple([place if some else None for place, some in places])
    body = Body((type.out,), (Node(argument_type(0, type.out), ()),), (Value(0),), 0, (0,))
    body = body if parts[1] is None else body_of_type(parts[1])
    return Derivative(body, type.out.size, ((Given.GRADIENT, 0),), operands, ())


def _compiled(type: BoundType, key: Hashable, make: Callable[[NodeType], Derivative]) -> CompiledDerivative:
    """The derivative of a type that is known by a key, or made."""
    known: CompiledDerivative | None = type.derivatives.get(key)
    if known is not None:
        return known

    def computed(of: NodeType) -> Computed:
        found = make(of)
        reads = frozenset([spec for node in found.body.nodes for spec in node.type.parameters])
        how = CompiledDerivative(found.width, found.given, found.operands, found.terms, reads)
        return how, found.body

    program = Program(type.type, key, computed, type.backend, type.plain)
    how, tables = program.made()
    how = type.derivatives[key] = how if tables is None else how._replace(program=program)
    return how


def _saving_body(type: NodeType) -> Computed:
    """Where saved nodes lie in a row, and its width; what computes them beside the result."""
    body, places, width = body_of_type(type), dict[int, tuple[int, Spec]](), 0
    for number in _saved(type)[0]:
        spec = body.nodes[number].type.out
        places[number] = width, spec
        width += spec.size
    outputs = (*body.outputs, *map(Value, places)) if places else ()
    columns = *body.columns, *(type.out.size + column for column, _ in places.values())
    return (places, width), body._replace(outputs=outputs, columns=columns)
