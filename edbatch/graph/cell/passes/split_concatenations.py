"""Pass: `W @ [x, h]` as `W_x @ x + W_h @ h`, where x is ready before h is."""

from __future__ import annotations

from collections.abc import Sequence, Set
from itertools import groupby

from edbatch.graph.cell.body import Body, Node, Nodes, Value, rebuilt, spec_of_value
from edbatch.graph.cell.stacking import column_range
from edbatch.graph.node_type import node_type
from edbatch.graph.op import OPS
from edbatch.graph.spec import ParameterSpec, spec_of


def split_concatenations(body: Body, ready: Sequence[bool], chosen: Set[int]) -> Body:
    """Multiply runs of vectors that are ready, and of vectors that are not, with their columns of the matrix, and add.

    Args:
        ready: per node, whether it is ready early.
        chosen: the products that this is done with.
    """
    nodes = Nodes()
    new: dict[int, int] = {}

    def add(op: str, specs: list, operands: list[Value], attributes: tuple = (), cuts: tuple = ()) -> Value:
        return nodes.add(Node(node_type(OPS[op], attributes, tuple(specs)), tuple(operands), cuts=cuts))

    for number, node in enumerate(body.nodes):
        vectors = concatenated(body, node) if number in chosen else []
        runs = [list(run) for _, run in groupby(vectors, lambda value: ready[value.node])]
        if len(runs) < 2:
            new[number] = nodes.add(node.moved(new)).node
            continue
        weight, _, *bias = node.type.operands
        assert isinstance(weight, ParameterSpec)
        begin = 0
        products: list[Value] = []
        for run in runs:
            specs = [spec_of_value(body, value) for value in run]
            size = sum(spec.size for spec in specs)
            moved = [value.moved(new) for value in run]
            x = moved[0] if len(run) == 1 else add("concatenate", specs, moved, (("axis", 0),))
            specs = [column_range(weight, begin, begin + size), spec_of((size,), node.type.out.dtype)]
            with_bias = bool(bias) and ready[run[0].node]
            products.append(add("affine" if with_bias else "matmul", specs + bias * with_bias, [x], cuts=node.cuts))
            bias = [] if with_bias else bias
            begin += size
        total = products[0]
        for product in products[1:]:
            total = add("add", [node.type.out] * 2, [total, product], cuts=node.cuts)
        new[number] = total.node
    return rebuilt(body, nodes, new)


def concatenated(body: Body, node: Node) -> tuple[Value, ...]:
    """The vectors whose concatenation is multiplied with a parameter; none if the node is something else."""
    specs = node.type.operands
    if (
        node.type.op.name not in ("matmul", "affine")
        or len(node.operands) != 1
        or len(node.type.out.shape) != 1
        or not isinstance(specs[0], ParameterSpec)
    ):
        return ()
    (value,) = node.operands
    below = body.nodes[value.node]
    if value.view is not None or below.type.op.name != "concatenate" or len(below.type.out.shape) != 1:
        return ()
    if any(value.node == output.node for output in body.outputs):  # which its users may ask for the gradient of
        return ()
    return below.operands
