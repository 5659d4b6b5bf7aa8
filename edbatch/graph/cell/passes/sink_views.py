"""Pass: a view of an element-wise result becomes the op on views of its operands.

Gates that lie side by side (`sigmoid(gates)`, then a split) become ops of the size of one gate, which fuse with what
is done to each. No entry is computed twice where the views do not overlap; one that shows more entries than there are
stays.
"""

from __future__ import annotations

from collections.abc import Sequence

from edbatch.graph.cell.body import Body, Node, Nodes, Value, spec_of_value
from edbatch.graph.cell.passes.entries import in_order
from edbatch.graph.node_type import node_type
from edbatch.graph.spec import Spec
from edbatch.graph.views import View, columns_of, view_of


def sink_views(body: Body, named: bool = False) -> Body:
    """Replace views of element-wise ops whose operands all have the shape of the result.

    Args:
        named: each result keeps its gradient, see `prepare_for_batching`: what is read of it is read there.
    """
    returned = {value.node for value in body.outputs} if named else set()
    below: list[dict[Value, list[Value]]] = [{} for _ in body.nodes]  # of views of nodes, what they become views of
    for number in range(len(body.nodes) - 1, -1, -1):
        for operands in (body.nodes[number].operands, *below[number].values()):
            for value in operands:
                read = None if value.node in returned else _views_of_operands(body, value)
                if read is not None:
                    below[value.node][value] = read
    sunk: dict[Value, Value] = {}
    new: dict[int, int] = {}
    nodes = Nodes()

    def moved(values: Sequence[Value]) -> tuple[Value, ...]:
        return tuple([sunk.get(value) or Value(new[value.node], value.view) for value in values])

    for number, node in enumerate(body.nodes):
        new[number] = nodes.add(node.of(moved(node.operands))).node
        for value, operands in below[number].items():
            assert value.view is not None
            type = node_type(node.type.op, node.type.attributes, (value.view.out,) * len(operands))
            sunk[value] = nodes.add(Node(type, moved(operands), node.payload, cuts=_cuts(node, value.view)))
    return body._replace(nodes=tuple(nodes), outputs=moved(body.outputs))


def _views_of_operands(body: Body, value: Value) -> list[Value] | None:
    """What an element-wise op reads to compute what a view shows of it; None if it has to compute more."""
    node = body.nodes[value.node]
    if in_order(value.view) or not _is_aligned(body, node):
        return None
    assert value.view is not None
    if value.view.out.size > value.view.root.size:
        return None
    operands = []
    for operand in node.operands:
        view = seen_through(operand, spec_of_value(body, operand), value.view)
        if view is None:
            return None
        operands.append(Value(operand.node, view))
    return operands


def _is_aligned(body: Body, node: Node) -> bool:
    op = node.type.op
    return (
        op.elementwise
        and bool(node.operands)
        and all(spec_of_value(body, value).shape == node.type.out.shape for value in node.operands)
    )


def _cuts(node: Node, view: View) -> tuple[int, ...]:
    """Where nodes that were merged begin in what a view shows: consecutive entries, if it shows parts of several."""
    place = columns_of(view) if node.cuts else None
    if place is None:
        return ()
    begin, size = place
    return tuple(cut - begin for cut in node.cuts if begin < cut < begin + size)


def seen_through(operand: Value, spec: Spec, view: View) -> View | None:
    """`view`, of an operand that is itself seen through a view; None if that takes a copy."""
    found, code = operand.view, operand.code
    for op, attributes in view.steps:
        found = view_of(spec if found is None else found.out, code, op, attributes)
        if found is None:
            return None
        code = found.code
    return found
