"""Pass: copies of what steps cannot read as it lies.

Fused runs read entries wherever they are. But a product of a batch reads a matrix with a row per call, of entries side
by side: a BLAS takes none whose rows are all at one place. What a cell returns is copied to its row by columns. And a
parameter that is stored by columns has no view in another shape.
"""

from __future__ import annotations

from collections.abc import Sequence

from edbatch.graph.cell.body import Body, Node, Nodes, Value, rewritten
from edbatch.graph.cell.passes.entries import in_order
from edbatch.graph.cell.passes.fuse import is_contiguous
from edbatch.graph.cell.trace import ARGUMENT
from edbatch.graph.op import Kind
from edbatch.graph.ops.shape import INDEX, RESHAPE, TRANSPOSE
from edbatch.graph.sources import PARAMETER
from edbatch.graph.spec import ParameterSpec

PRODUCTS = ("matmul", "matmul_stack")


def rows_for_steps(body: Body) -> Body:
    """Copy, once a call, what products, and the row of the result, are made of and does not lie in rows."""
    copies: dict[Value, Value] = {}

    def change(nodes: Nodes, _: int, node: Node) -> Value | None:
        made = _Rows(nodes, copies)
        operands = list(map(made.readable, node.operands))
        if node.type.op.name == "matmul":
            operands = made.factors(operands)
        elif node.type.op.name == "matmul_stack" or node.type.op.call is not None:
            operands = list(map(made.row, operands))
        return nodes.add(node.of(tuple(operands)))

    found = rewritten(body, change)
    nodes = Nodes(found.nodes)
    made = _Rows(nodes, copies)
    outputs = [made.row(made.readable(value)) for value in found.outputs]
    return found._replace(nodes=tuple(nodes), outputs=tuple(outputs))


def with_own_outputs(body: Body) -> Body:
    """The body with outputs that are nodes of their own, and computed: copies of what they were, if need be."""
    nodes, outputs = Nodes(body.nodes), list[Value]()
    for value in body.outputs:
        known = nodes[value.node].type.op.kind is Kind.SOURCE or value.node in [output.node for output in outputs]
        outputs.append(_copied(nodes, value) if known or not in_order(value.view) else value)
    return body._replace(nodes=tuple(nodes), outputs=tuple(outputs))


def _copied(nodes: Nodes, value: Value) -> Value:
    """A copy."""
    all = tuple((0, size, 1) for size in nodes.spec(value).shape)
    return nodes.made(INDEX, (value,), (("index", all),))


def parameter_matrix(nodes: Sequence[Node], operand: Value) -> tuple[ParameterSpec, bool] | None:
    """The parameter that an operand is, if it is a matrix, and whether it is transposed; None: it is something else."""
    node = nodes[operand.node]
    if node.type.op is not PARAMETER or len(node.type.out.shape) != 2:
        return None
    if any(op is not TRANSPOSE or dict(attributes)["axes"] != (1, 0) for op, attributes in operand.steps):
        return None
    return node.type.attributes[0][1], len(operand.steps) % 2 == 1


class _Rows:
    """Makes nodes, and copies, of what is in a body as it grows."""

    def __init__(self, nodes: Nodes, copies: dict[Value, Value]) -> None:
        self.nodes, self._copies = nodes, copies

    def factors(self, operands: Sequence[Value]) -> list[Value]:
        """Of a product: one matrix that is a parameter, the others as rows."""
        found: list[Value] = []
        has_matrix = False
        for operand in operands:
            if not has_matrix and parameter_matrix(self.nodes, operand) is not None:
                has_matrix = True
                found.append(operand)
            else:
                found.append(self.row(operand, fixed=True))
        return found

    def readable(self, value: Value) -> Value:
        """A value where runs can read it."""
        type = self.nodes[value.node].type
        is_matrix = type.op is PARAMETER and len(type.out.shape) == 2
        if is_matrix and any(op is RESHAPE for op, _ in value.steps):
            return Value(self._copy(Value(value.node)).node, value.view)
        return value

    def row(self, value: Value, fixed: bool = False) -> Value:
        """The same with entries side by side; `fixed`: a row for each call, too, if it is a vector."""
        node = self.nodes[value.node]
        if not is_contiguous(self.nodes, value):
            return self._copy(value)
        is_fixed = node.type.op.kind is Kind.SOURCE and node.type.op is not ARGUMENT
        if fixed and is_fixed and len(self.nodes.spec(value).shape) == 1:
            return self._copy(value)
        return value

    def _copy(self, value: Value) -> Value:
        if value not in self._copies:
            self._copies[value] = _copied(self.nodes, value)
        return self._copies[value]
