"""Pass: copies of what steps cannot read as it lies.

Fused runs read entries wherever they are. But a product of a batch reads a matrix with a row per call, of entries side
by side: a BLAS takes none whose rows are all at one place. What a cell returns is copied to its row by columns. And a
parameter that is stored by columns has no view in another shape.
"""

from __future__ import annotations

from dataclasses import replace

from edbatch.graph.body import Body, Node, Value, spec_of_value
from edbatch.graph.node_type import node_type
from edbatch.graph.op import Kind
from edbatch.graph.ops.shape import INDEX, RESHAPE
from edbatch.graph.passes.fuse import is_contiguous
from edbatch.graph.sources import PARAMETER
from edbatch.graph.trace import ARGUMENT


def rows_for_steps(body: Body) -> Body:
    """Copy, once a call, what products, and the row of the result, are made of and does not lie in rows."""
    made = _Copies(body)
    for number, node in enumerate(body.nodes):
        operands = [made.readable(value) for value in node.operands]
        if node.type.op.name in ("matmul", "affine"):
            operands = [made.row(value, fixed=at == 0) for at, value in enumerate(operands)]
        made.add(number, replace(node, operands=tuple(operands)))
    outputs = [made.row(made.readable(value)) for value in body.outputs]
    return replace(body, nodes=tuple(made.nodes), outputs=tuple(outputs))


class _Copies:
    """The body as it grows.

    Attributes:
        nodes: of the new body.
    """

    def __init__(self, body: Body) -> None:
        self.old = body
        self.nodes: list[Node] = []
        self._new: dict[int, int] = {}
        self._copies: dict[Value, Value] = {}

    def add(self, number: int, node: Node) -> None:
        """A node of the old body, with operands in the new one."""
        self._new[number] = len(self.nodes)
        self.nodes.append(node)

    def readable(self, old: Value) -> Value:
        """What a value of the old body is in the new one, where runs can read it."""
        value = old.moved(self._new)
        is_parameter = self.nodes[value.node].type.op is PARAMETER
        if is_parameter and old.view is not None and any(op is RESHAPE for op, _ in old.view.steps):
            return Value(self._copy(Value(value.node)).node, old.view)
        return value

    def row(self, value: Value, fixed: bool = False) -> Value:
        """The same with entries side by side; `fixed`: a row for each call, too, if it is a vector."""
        body, node = self._body, self.nodes[value.node]
        if not is_contiguous(body, value):
            return value if node.type.op is PARAMETER and value.view is None and fixed else self._copy(value)
        is_fixed = node.type.op.kind is Kind.SOURCE and node.type.op is not ARGUMENT
        if fixed and is_fixed and len(spec_of_value(body, value).shape) == 1:
            return self._copy(value)
        return value

    @property
    def _body(self) -> Body:
        return replace(self.old, nodes=tuple(self.nodes))

    def _copy(self, value: Value) -> Value:
        if value not in self._copies:
            spec = spec_of_value(self._body, value)
            all = (("index", tuple((0, size, 1) for size in spec.shape)),)
            self.nodes.append(Node(node_type(INDEX, all, (spec,)), (value,)))
            self._copies[value] = Value(len(self.nodes) - 1)
        return self._copies[value]
