"""The body of a cell: the small graph that every call of the cell computes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from edbatch.graph.cell.trace import Trace
from edbatch.graph.columns import nodes_of
from edbatch.graph.node_type import Attributes, NodeType, intern, node_type
from edbatch.graph.op import Kind, Op
from edbatch.graph.ops.shape import INDEX, RESHAPE
from edbatch.graph.sources import PARAMETER
from edbatch.graph.spec import ParameterSpec, Spec, spec_of
from edbatch.graph.views import NODE_BITS, NODE_MASK, VIEWS, View, columns_of, view_of

Steps = tuple[tuple[Op, Attributes], ...]  # views, one of the other


class Value(NamedTuple):
    """A node of the body, or what a view shows of it."""

    node: int
    view: View | None = None

    @property
    def steps(self) -> Steps:
        """The views that it is seen through, one of the other."""
        return () if self.view is None else self.view.steps

    @property
    def code(self) -> int:
        """Of its view; 0: it has none."""
        return 0 if self.view is None else self.view.code


class Node(NamedTuple):
    """One operation.

    Args:
        type: its type.
        operands: one per operand; a parameter is a node, too.
        payload: integers; -1 - k stands for the cell's k-th integer argument.
        value: of a constant: what fills it (a number or an array).
        cuts: if several nodes were merged, as products of stacked weights are: where in its vector those but the first
            begin.
    """

    type: NodeType
    operands: tuple[Value, ...]
    payload: tuple[int, ...] = ()
    value: Any = None
    cuts: tuple[int, ...] = ()

    def of(self, operands: tuple[Value, ...]) -> Node:
        """The same of other operands."""
        return self if operands == self.operands else Node(self.type, operands, self.payload, self.value, self.cuts)


class Nodes(list[Node]):
    """The nodes of a body as it grows."""

    def add(self, node: Node) -> Value:
        """The value of one more node."""
        self.append(node)
        return Value(len(self) - 1)

    def made(
        self,
        op: Op,
        operands: Sequence[Value],
        attributes: Attributes = (),
        cuts: tuple[int, ...] = (),
    ) -> Value:
        """The value of a new node of an op."""
        type = node_type(op, attributes, tuple(map(self.spec, operands)))
        return self.add(Node(type, tuple(operands), cuts=cuts))

    def of_type(self, type: NodeType, values: Iterable[Value], payload: tuple[int, ...], value: Any = None) -> Value:
        """The value of a new node of a type of nodes of graphs, of which parameters are part.

        Args:
            values: of the operands that are none.
        """
        if any(isinstance(spec, ParameterSpec) for spec in type.operands):
            given = iter(values)
            values = [self.parameter(x) if isinstance(x, ParameterSpec) else next(given) for x in type.operands]
            specs = tuple([spec_of(spec.shape, spec.dtype, spec.each) for spec in type.operands])
            type = intern(type.op, type.attributes, specs, type.out)
        return self.add(Node(type, tuple(values), payload, value))

    def parameter(self, spec: ParameterSpec, cuts: tuple[int, ...] = ()) -> Value:
        """The value of a new node that is a parameter."""
        type = intern(PARAMETER, (("parameter", spec),), (), spec_of(spec.shape, spec.dtype))
        return self.add(Node(type, (), cuts=cuts))

    def spec(self, value: Value) -> Spec:
        """Shape and dtype of a value."""
        return self[value.node].type.out if value.view is None else value.view.out

    def seen(self, value: Value, steps: Steps) -> Value:
        """A value seen through more views; of too many on one another, a copy of what the first of them show."""
        for op, attributes in steps:
            view = view_of(self.spec(value), value.code, op, attributes)
            value = self.made(op, (value,), attributes) if view is None else Value(value.node, view)
        return value

    def moved(self, values: Iterable[Value], new: Mapping[int, Value]) -> tuple[Value, ...]:
        """Values of nodes that are others now, seen as they were."""
        found = []
        for node, view in values:
            to = new[node]
            if view is not None:
                to = Value(to.node, view) if to.view is None else self.seen(to, view.steps)
            found.append(to)
        return tuple(found)


class Body(NamedTuple):
    """What a cell computes: nodes in an order in which operands precede their users.

    Args:
        arguments: specs of the expressions it is given; the first nodes of the body.
        nodes: the arguments, then the operations.
        outputs: what it returns, flattened.
        payloads: number of integers it is given.
        columns: per output, where it begins in a row of its result, once that is known.
    """

    arguments: tuple[Spec, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Value, ...]
    payloads: int
    columns: tuple[int, ...] = ()

    @property
    def dtype(self) -> np.dtype:
        """Of all values."""
        return self.nodes[0].type.out.dtype


def parameter_in(nodes: Sequence[Node], value: Value) -> ParameterSpec | None:
    """The parameter that a value is, as it is; None: it is something else."""
    node = nodes[value.node]
    found: ParameterSpec | None = None
    if value.view is None and node.type.op is PARAMETER:
        found = node.type.attributes[0][1]
    return found


def with_nodes(body: Body, numbers: Sequence[int]) -> Body:
    """The body with nodes of these numbers only."""
    if len(numbers) == len(body.nodes):
        return body
    new = {number: position for position, number in enumerate(numbers)}

    def moved(values: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple([Value(new[node], view) for node, view in values])

    nodes = [body.nodes[number] for number in numbers]
    return body._replace(nodes=tuple([node.of(moved(node.operands)) for node in nodes]), outputs=moved(body.outputs))


def ancestors(body: Body, numbers: Iterable[int]) -> set[int]:
    """These nodes and all that they need."""
    found = set(numbers)
    for number in range(len(body.nodes) - 1, -1, -1):
        if number in found:
            found.update([value.node for value in body.nodes[number].operands])
    return found


def rewritten(body: Body, change: Callable[[Nodes, int, Node], Value | None]) -> Body:
    """The body with other nodes in the places of some.

    Args:
        change: from the nodes made so far, to which it adds, a node's number before, and the node, whose operands are
            among them, to the value that stands for it now; None: it stays.
    """
    nodes, new = Nodes(), dict[int, Value]()
    for number, old in enumerate(body.nodes):
        node = old.of(nodes.moved(old.operands, new)) if old.operands else old
        new[number] = change(nodes, number, node) or nodes.add(node)
    outputs = nodes.moved(body.outputs, new)
    return body._replace(nodes=tuple(nodes), outputs=outputs)


def spec_of_value(body: Body, value: Value) -> Spec:
    """Shape and dtype of a value."""
    return value.view.out if value.view is not None else body.nodes[value.node].type.out


def origin(body: Body, value: Value) -> tuple[int, Steps]:
    """The node that a value is a view of, and the views that it is seen through; a view that is a copy is a view."""
    steps = value.steps
    node = body.nodes[value.node]
    while node.type.op.kind is Kind.VIEW:
        (value,) = node.operands
        steps = (*value.steps, (node.type.op, node.type.attributes), *steps)
        node = body.nodes[value.node]
    return value.node, steps


def slice_of(body: Body, node: int, begin: int, end: int) -> Value:
    """Entries of a node that is a vector; the node if that is all of them."""
    out = body.nodes[node].type.out
    return Value(
        node, None if (begin, end) == (0, out.size) else view_of(out, 0, INDEX, (("index", ((begin, end, 1),)),))
    )


def joined(body: Body, places: Iterable[tuple[int, Value]]) -> list[tuple[int, Value]]:
    """What lies in a row, with neighbouring slices of a vector that are neighbours there, too, as one.

    Args:
        places: (column that it begins at, value).
    """
    found: list[tuple[int, Value]] = []
    for column, value in places:
        interval = _interval(body, value)
        before = _interval(body, found[-1][1]) if found and interval is not None else None
        if before is not None and interval is not None and found[-1][1].node == value.node:
            begin, end = before
            if interval[0] == end and column == found[-1][0] + end - begin:
                found[-1] = found[-1][0], slice_of(body, value.node, begin, interval[1])
                continue
        found.append((column, value))
    return found


def _interval(body: Body, value: Value) -> tuple[int, int] | None:
    """Which entries of a vector a value is; None if it is something else."""
    out, view = body.nodes[value.node].type.out, value.view
    if len(out.shape) != 1:
        return None
    if view is None:
        return 0, out.size
    place = columns_of(view) if [op for op, _ in view.steps] == [INDEX] and len(view.out.shape) == 1 else None
    return None if place is None else (place[0], sum(place))


def body_of(trace: Trace, arguments: tuple[Spec, ...], outputs: list[int], payloads: int) -> Body:
    """What a trace has recorded; `outputs` are ids of its expressions."""
    nodes, new = Nodes(), dict[int, Value]()
    for number, (type, operands, integers) in enumerate(nodes_of(trace.types, trace.operands, trace.integers)):
        value: Any = None
        if type.op.name == "input":
            value, integers = trace.inputs[integers[0]], []
        new[number] = nodes.of_type(type, nodes.moved(map(to_value, operands), new), tuple(integers), value)
    return Body(arguments, tuple(nodes), nodes.moved(map(to_value, outputs), new), payloads)


def to_value(id: int) -> Value:
    """An expression's id as a value."""
    return Value(id & NODE_MASK, VIEWS[id >> NODE_BITS])


def in_a_row(body: Body) -> tuple[Body, Spec]:
    """The body with outputs that lie side by side, each once, in one row, its node's value; the spec of the row."""
    returned = list(dict.fromkeys(body.outputs))
    *places, width = accumulate((spec_of_value(body, value).size for value in returned), initial=0)
    begins = dict(zip(returned, places, strict=True))
    row = spec_of_value(body, returned[0]) if len(returned) == 1 else spec_of((width,), body.dtype)
    return body._replace(columns=tuple(begins[value] for value in body.outputs)), row


def steps_to_outputs(body: Body, row: Spec) -> tuple[tuple[int, Spec], ...]:
    """How to see each output in the row: the step from the node's id to the expression's, and its spec."""
    specs = [spec_of_value(body, value) for value in body.outputs]
    return tuple((step_to(row, column, spec), spec) for column, spec in zip(body.columns, specs, strict=True))


def step_to(row: Spec, column: int, spec: Spec) -> int:
    """The step from a row's id to that of a value which begins at a column of it; 0 if it is the row."""
    if spec is row:
        return 0
    index = (column,) if spec.shape == () else ((column, column + spec.size, 1),)
    view = view_of(row, 0, INDEX, (("index", index),))
    assert view is not None
    if len(spec.shape) > 1:
        view = view_of(view.out, view.code, RESHAPE, (("shape_to", spec.shape),))
        assert view is not None
    return view.code << NODE_BITS
