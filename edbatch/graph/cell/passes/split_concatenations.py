"""Pass: `W @ [x, h]` as `W_x @ x + W_h @ h`, where x is ready before h is."""

from __future__ import annotations

from collections.abc import Sequence, Set
from itertools import groupby

from edbatch.graph.cell.batches import is_product
from edbatch.graph.cell.body import Body, Node, Nodes, Value, parameter_in, rewritten
from edbatch.graph.cell.stacking import column_range
from edbatch.graph.op import OPS


def split_concatenations(body: Body, ready: Sequence[bool], chosen: Set[int]) -> Body:
    """Multiply runs of vectors that are ready, and of vectors that are not, with their columns of the matrix, and add.

    Args:
        ready: per node, whether it is ready early.
        chosen: the products that this is done with.
    """

    def change(nodes: Nodes, number: int, node: Node) -> Value | None:
        vectors = concatenated(body, body.nodes[number]) if number in chosen else ()
        if len({ready[value.node] for value in vectors}) < 2:
            return None
        moved = iter(nodes[node.operands[1].node].operands)
        weight = parameter_in(nodes, node.operands[0])
        assert weight is not None
        begin, total = 0, None
        for _, run in groupby(vectors, lambda value: ready[value.node]):
            values = [next(moved) for _ in run]
            x = values[0] if len(values) == 1 else nodes.made(OPS["concatenate"], values, (("axis", 0),))
            end = begin + nodes.spec(x).size
            factors = nodes.parameter(column_range(weight, begin, end)), x
            product = nodes.made(OPS["matmul"], factors, cuts=node.cuts)
            total = product if total is None else nodes.made(OPS["add"], (total, product), cuts=node.cuts)
            begin = end
        return total

    return rewritten(body, change)


def concatenated(body: Body, node: Node) -> tuple[Value, ...]:
    """The vectors whose concatenation is multiplied with a parameter; none if the node is something else."""
    if not is_product(body, node):
        return ()
    _, value = node.operands
    below = body.nodes[value.node]
    if value.view is not None or below.type.op.name != "concatenate" or len(below.type.out.shape) != 1:
        return ()
    if any(value.node == output.node for output in body.outputs):  # which its users may ask for the gradient of
        return ()
    return below.operands
