"""Derivatives: from a body to the body that computes its gradients, by the rules of the op table.

Backpropagation through a static subgraph is a static subgraph: the reverse sweep over the body's nodes is recorded on a
trace, and what it records goes through the same passes and is compiled like any other body.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from edbatch.errors import EdBatchError
from edbatch.graph.cell.body import Body, Node, Value, body_of, joined, origin, parameter_in, spec_of_value, step_to
from edbatch.graph.cell.derivative_row import Place, row_of_gradients, without_unread
from edbatch.graph.cell.flow import every, reached
from edbatch.graph.cell.gradient_sum import fit, only, stops, total
from edbatch.graph.cell.passes import prepare_for_batching, prepare_for_kernels
from edbatch.graph.cell.stacking import some_rows
from edbatch.graph.cell.trace import ARGUMENT, Payload, Trace, traced
from edbatch.graph.expression import Expression
from edbatch.graph.node_type import TYPES, intern, parameter_of
from edbatch.graph.op import Kind, gradient_of, no_gradient
from edbatch.graph.ops.loss import UNPICK
from edbatch.graph.ops.matrix import MATMUL, OUTER
from edbatch.graph.ops.shape import INDEX, TRANSPOSE
from edbatch.graph.sources import INPUT, PARAMETER
from edbatch.graph.spec import ParameterSpec, Spec
from edbatch.graph.views import View, look_through, view_of

_TURNED = (("axes", (1, 0)),)


class Given(IntEnum):
    """What a derivative is given."""

    OPERAND = 0  # the n-th argument of the body
    RESULT = 1  # the row of its outputs
    SAVED = 2  # the value of the body's n-th node, kept by the forward run
    GRADIENT = 3  # the gradient of the row of its outputs


@dataclass(frozen=True)
class Term:
    """A sum over calls that is a parameter's gradient, or a part of it.

    Args:
        parameter: whose.
        parts: where its values lie, or which of the values they are that the forward run saved. One: the sum of it.
            Two, [m] and [k], or [n, m] and [n, k]: the sum of aᵀ b, ONE product for all calls.
        index: for rows of the parameter, the integer of a call (-1 - k), or the constant, that says which row; else
            None.
        view: the part of the parameter that it is the gradient of; None: all of it.
    """

    parameter: ParameterSpec
    parts: tuple[Place | Value, ...]
    index: int | None = None
    view: View | None = None


class Derivative(NamedTuple):
    """The derivative of a body.

    Args:
        body: computes it; its integers are those of the body it is of.
        width: entries of the row of its outputs.
        given: per argument what it is, see `Given`.
        operands: per argument of the body it is of, where its gradient lies; None where none flows or was asked for.
        terms: gradients of parameters.
    """

    body: Body
    width: int
    given: tuple[tuple[Given, int], ...]
    operands: tuple[Place | None, ...]
    terms: tuple[Term, ...]


def derivative(
    body: Body,
    row: Spec,
    needed: Sequence[bool],
    saved: Sequence[int] = (),
    live: Collection[int] | None = None,
    plain: bool = False,
    of_outputs: bool = False,
) -> Derivative:
    """The body that computes the gradients of a body's arguments, and what its parameters' gradients are sums of.

    What the reverse sweep reads of the forward computation is taken from the result where it is there, from what was
    saved, or is computed again from the arguments. What is computed again may differ in its last bit, another kernel
    having computed it: values that are compared with one another are all given, or all computed again.

    Args:
        body: of a cell, or of a single op.
        row: of its outputs.
        needed: per argument, whether its gradient is asked for.
        saved: nodes whose values are given.
        live: the outputs that gradients flow into, by number; None: all.
        plain: leave out the passes that only make it faster.
        of_outputs: compute, of what the body returns and not of its arguments and parameters, all that flows to it:
            also from where the body itself reads it. `operands` of the result are then of the body's outputs.
    """
    sweep = _Sweep(body, row, saved, live, plain)
    return traced(sweep.trace, lambda: sweep.run(needed, of_outputs))


def worth_saving(body: Body, row: Spec) -> tuple[tuple[int, ...], Derivative | None]:
    """The nodes whose values the derivative reads and would have to compute again by more than element-wise ops.

    Also the derivative, of all arguments and outputs, if these are given to it; None: it has not been made.
    """
    returned = {value.node for _, value in joined(body, _returned(body)) if value.view is None}
    costly = [
        number
        for number, node in enumerate(body.nodes)
        if node.type.op.kind is Kind.COMPUTE and not node.type.op.elementwise and number not in returned
    ]
    found = derivative(body, row, [True] * len(body.arguments), costly)
    read = {number for kind, number in found.given if kind is Given.SAVED}
    read |= {part.node for term in found.terms for part in term.parts if isinstance(part, Value)}
    return tuple(sorted(read)), found if sorted(read) == costly else None


class _Sweep:
    """The trace of one derivative."""

    def __init__(self, body: Body, row: Spec, saved: Sequence[int], live: Collection[int] | None, plain: bool) -> None:
        self.body, self.plain = body, plain
        live = range(len(body.outputs)) if live is None else live
        self.reached = reached(body, live)
        self.trace = trace = Trace("derivative", row.dtype)
        arguments = [trace.argument(spec) for spec in body.arguments]
        result = trace.argument(row)
        kept = {number: trace.argument(body.nodes[number].type.out) for number in saved}
        gradient = trace.argument(row)
        self.given = [(Given.OPERAND, number) for number in range(len(arguments))]
        self.given += [(Given.RESULT, 0), *((Given.SAVED, number) for number in saved), (Given.GRADIENT, 0)]
        # Values of the body's nodes, and gradients that flow into them: (the view they were read through, gradient).
        self.values: dict[int, Expression] = {**dict(enumerate(arguments)), **kept}
        sources = (number for number, node in enumerate(body.nodes) if node.type.op.kind is Kind.SOURCE)
        self.exact = {*range(len(arguments)), *sources}  # the same to the last bit whoever computes them
        self.chooses = any(map(_compares, body.nodes))
        self.again: dict[int, Expression] = {}  # values computed from the arguments alone
        self.flows: dict[int, list[tuple[Any, Expression]]] = defaultdict(list)
        self.terms: list[tuple[ParameterSpec, View | None, Expression]] = []
        flowing = {body.outputs[number] for number in live}
        returned = _returned(body)
        for column, value in joined(body, returned):
            spec = spec_of_value(body, value)
            if value.view is None:
                self.values.setdefault(value.node, Expression(trace, result.id + step_to(row, column, spec), spec))
        self.told = set(self.values) | self.exact
        for column, value in joined(body, (place for place in returned if place[1] in flowing)):
            spec = spec_of_value(body, value)
            if not stops(value.view):
                flow = Expression(trace, gradient.id + step_to(row, column, spec), spec)
                self.flows[value.node].append((value.view, flow))

    def run(self, needed: Sequence[bool], of_outputs: bool) -> Derivative:
        requires = [True] * len(self.body.nodes) if of_outputs else self._requires(needed)
        for number, node in enumerate(self.body.nodes):
            if number not in self.values:
                self._replay(number)
            if self.chooses:
                is_exact = number in self.exact or node.type.op.call is not None
                self.again[number] = self.values[number] if is_exact else self._recorded(number, self.again)
        gradients: dict[int, Expression] = {}
        totals: dict[int, Expression] = {}
        for number in reversed(range(len(self.body.nodes))):
            node = self.body.nodes[number]
            if node.type.op is PARAMETER and not of_outputs and requires[number] and every(self.reached[number]):
                self._parts_of_parameter(node.type.attributes[0][1], self.flows[number])
            gradient = total(node.type.out, self.flows[number]) if requires[number] else None
            if gradient is None:
                continue
            totals[number] = gradient
            if node.type.op is ARGUMENT:
                gradients[number] = gradient
            elif node.type.op is PARAMETER:
                self._to_parameter(number, node.type.attributes[0][1], gradient)
            elif node.type.op.kind is not Kind.SOURCE and node.type.op.gradient is not no_gradient:
                self._step_back(number, gradient, requires)
        if of_outputs:
            self.terms.clear()
            origins = [origin(self.body, value) for value in self.body.outputs]
            return self._finish(
                [look_through(totals[node], steps) if node in totals else None for node, steps in origins]
            )
        return self._finish([gradients.get(number) for number in range(len(self.body.arguments))])

    def _requires(self, needed: Sequence[bool]) -> list[bool]:
        """Per node, whether something whose gradient is wanted goes into it."""
        requires: list[bool] = []
        for number, node in enumerate(self.body.nodes):
            op = node.type.op
            if op is ARGUMENT:
                requires.append(needed[number])
                continue
            found = op is PARAMETER or any(requires[value.node] and not stops(value.view) for value in node.operands)
            requires.append(found and op.gradient is not no_gradient)
        return requires

    def _replay(self, number: int) -> None:
        """Record a node once more; the passes drop it again if nobody reads it."""
        node, trace = self.body.nodes[number], self.trace
        if node.value is not None:
            trace.inputs.append(node.value)
            self.values[number] = trace.add(intern(INPUT, (), (), node.type.out), (), (len(trace.inputs) - 1,))
        else:
            self.values[number] = self._recorded(number, self._as_one(number) if _compares(node) else self.values)

    def _recorded(self, number: int, values: Mapping[int, Expression]) -> Expression:
        """A node once more, of these values of its operands."""
        node = self.body.nodes[number]
        ids = [look_through(values[value.node], value.steps).id for value in node.operands]
        counted = [len(ids)] if node.type.op.variadic else []
        return self.trace.add(node.type, [*counted, *ids], node.payload)

    def _as_one(self, number: int) -> Mapping[int, Expression]:
        """Values of a node's operands that can be compared: all of the forward run, or all computed again."""
        read = {value.node for value in self.body.nodes[number].operands}
        return self.values if len(read - self.exact) < 2 or read <= self.told else self.again

    def _step_back(self, number: int, gradient: Expression, requires: list[bool]) -> None:
        """Let a node's gradient flow on to its operands."""
        node, out = self.body.nodes[number], self.values[number]
        operands = [parameter_in(self.body.nodes, x) or x for x in node.operands]
        values: Mapping[int, Expression] = self.values
        if node.type.op.chooses and not all(x.node in self.told for x in node.operands):
            values = self._as_one(number)
            out = self._recorded(number, values)
        if node.type.op.elementwise or every(self.reached[number]):
            self._flow(number, gradient, out, operands, requires, values)
            return
        for begin, end in self._runs(number):  # of a product, with the weights of some rows
            chosen = [some_rows(x, begin, end) if isinstance(x, ParameterSpec) else x for x in operands]
            self._flow(number, gradient[begin:end], out[begin:end], chosen, requires, values)

    def _flow(
        self,
        number: int,
        gradient: Expression,
        out: Expression,
        operands: Sequence[Any],
        requires: list[bool],
        values: Mapping[int, Expression],
    ) -> None:
        """Let the gradient of a node, or of some rows of a product, flow to operands, which have these values."""
        node = self.body.nodes[number]
        rule = gradient_of(node.type.op, node.type)
        xs: list[Any] = [
            look_through(values[x.node], x.steps) if isinstance(x, Value) else parameter_of(x) for x in operands
        ]
        integers = [Payload("derivative", -1 - x) if x < 0 else x for x in node.payload]
        flows = rule(gradient, out, *xs, *integers, **dict(node.type.attributes))
        flows = flows if isinstance(flows, tuple | list) else (flows,)
        if len(flows) != len(operands):
            raise EdBatchError(f"{node.type}: its gradient: expected {len(operands)} results, got {len(flows)}")
        if node.type.op.elementwise:
            flows = [self._of_reached(number, flow) for flow in flows]
        for operand, x, flow in zip(operands, xs, flows, strict=True):
            if flow is None:
                continue
            if isinstance(operand, ParameterSpec):
                self._to_parameter(number, operand, fit(flow, operand, node.type.out.each))
            elif requires[operand.node] and not stops(operand.view):
                self.flows[operand.node].append((operand.view, fit(flow, x.spec, node.type.out.each)))

    def _to_parameter(self, number: int, spec: ParameterSpec, gradient: Expression) -> None:
        """A parameter's gradient, through a node; of a stack, that of the parts that gradients flow into.

        A gradient of zero is something else: weight decay and momentum go on with it.
        """
        node = self.body.nodes[number]
        if every(self.reached[number]) or spec.shape != node.type.out.shape:
            self.terms.append((spec, None, gradient))
        else:
            runs = self._runs(number)
            self.terms += [(some_rows(spec, begin, end), None, gradient[begin:end]) for begin, end in runs]

    def _runs(self, number: int) -> list[tuple[int, int]]:
        """Where nodes that were merged and that gradients flow into lie in the result: neighbours together."""
        node = self.body.nodes[number]
        parts = zip(self.reached[number].tolist(), (0, *node.cuts), (*node.cuts, node.type.out.size), strict=True)
        runs = [list(run) for some, run in groupby(parts, itemgetter(0)) if some]
        return [(run[0][1], run[-1][2]) for run in runs]

    def _of_reached(self, number: int, flow: Expression | None) -> Expression | None:
        """What flows from a node that was merged of several: nothing from those of them that no gradient reaches."""
        if flow is None or every(self.reached[number]) or flow.shape != self.body.nodes[number].type.out.shape:
            return flow
        return only(flow, self._runs(number))

    def _parts_of_parameter(self, spec: ParameterSpec, flows: list[tuple[Any, Expression]]) -> None:
        """Take out the gradients of small parts of a parameter: no call makes an array of its size for them."""
        in_place = (INDEX, TRANSPOSE)  # whatever the order of the gradient's memory
        parts = [(view, x) for view, x in flows if view is not None and all(op in in_place for op, _ in view.steps)]
        if 2 * sum(x.spec.size for _, x in parts) > spec.size:
            parts = []
        for view, x in parts:
            flows[:] = [flow for flow in flows if flow[0] is not view or flow[1] is not x]  # == is no question to ask
            self.terms.append((spec, view, x))

    def _finish(self, gradients: list[Expression | None]) -> Derivative:
        """The derivative's body: simplified, without what it does not read."""
        arguments = tuple(TYPES[id].out for id in self.trace.types[: len(self.given)])
        flowing = [x for x in gradients if x is not None]
        ids = [x.id for x in flowing] + [x.id for *_, x in self.terms]
        body = body_of(self.trace, arguments, ids, self.body.payloads)
        outputs = list(body.outputs[: len(flowing)])
        summed: list[tuple[int, int, int | None]] = []
        for (_, view, _), value in zip(self.terms, body.outputs[len(flowing) :], strict=True):
            values, index = _summed(body, value) if view is None else ([value], None)
            summed.append((len(outputs), len(outputs) + len(values), index))
            outputs += values
        body = body._replace(outputs=tuple(outputs))
        body = prepare_for_kernels(prepare_for_batching(body, self.plain), self.plain)
        saved = {at: number for at, (kind, number) in enumerate(self.given) if kind is Given.SAVED}
        body, width, places = row_of_gradients(body, saved)
        flowed = iter(places)
        operands = tuple(None if x is None else next(flowed) for x in gradients)
        terms = tuple(
            Term(spec, tuple(places[begin:end]), index, view)
            for (spec, view, _), (begin, end, index) in zip(self.terms, summed, strict=True)
        )
        body, given = without_unread(body, self.given)
        return Derivative(body, width, given, operands, terms)  # type: ignore[arg-type]


def _compares(node: Node) -> bool:
    """Whether what it shows depends on which of two values is larger, or whether they are equal."""
    return node.type.op.chooses or (node.type.op.elementwise and node.type.op.gradient is no_gradient)


def _returned(body: Body) -> list[tuple[int, Value]]:
    """What a body returns, each once, and where it begins in the row."""
    return list(dict.fromkeys(zip(body.columns, body.outputs, strict=True)))


def _summed(body: Body, value: Value) -> tuple[list[Value], int | None]:
    """How a sum over calls is best computed: the values it needs of each call, and the integer that names a row."""
    node = body.nodes[value.node]
    turned = value.steps == ((TRANSPOSE, _TURNED),)
    of_calls = all(body.nodes[x.node].type.op is not PARAMETER for x in node.operands)
    if (value.view is None or turned) and of_calls and node.type.op in (OUTER, MATMUL):
        left, right = node.operands
        if node.type.op is MATMUL and len(node.type.out.shape) == 2:
            view = view_of(node.type.operands[0], left.code, TRANSPOSE, _TURNED)
            if view is not None:
                pair = [Value(left.node, view), right]
                return pair[::-1] if turned else pair, None
        elif node.type.op is OUTER:
            return [right, left] if turned else [left, right], None
    if value.view is None and node.type.op is UNPICK:
        return list(node.operands), node.payload[0]
    return [value], None
