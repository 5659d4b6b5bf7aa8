"""What of a body may run together: each batch one kernel, if its operands lie side by side (section 3.1)."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence

from edbatch.graph.cell.body import Body, Node, Value, parameter_in
from edbatch.graph.cell.stacking import space_of
from edbatch.graph.op import Kind


def computing(body: Body) -> list[int]:
    """The nodes that compute: no sources, and nothing that only places values side by side."""
    return [
        number
        for number, node in enumerate(body.nodes)
        if node.type.op.kind is not Kind.SOURCE and node.type.op.places is None
    ]


def operand_nodes(body: Body) -> list[list[int]]:
    """Per node the computing nodes that it reads, be it through a concatenation."""
    found: list[list[int]] = []
    for node in body.nodes:
        below: dict[int, None] = {}
        for value in node.operands:
            op = body.nodes[value.node].type.op
            if op.places is not None:
                below.update(dict.fromkeys(found[value.node]))
            elif op.kind is not Kind.SOURCE:
                below[value.node] = None
        found.append(list(below))
    return found


def batch_kind(body: Body, number: int) -> Hashable:
    """Computing nodes of one kind may be one batch.

    Products of several weights with one vector (of different vectors, they would be several products to a BLAS), and
    what is done to them with biases; other element-wise ops with equal attributes and shapes; for other ops, nodes of
    one type. Parameters that are parts of different stacks already are never stacked.
    """
    node = body.nodes[number]
    type = node.type
    parameters = [parameter_in(body.nodes, value) for value in node.operands]
    if is_product(body, node):
        assert parameters[0] is not None
        return "product", node.operands[1], space_of(parameters[0])
    if type.op.elementwise:
        spaces = tuple(space_of(spec) if spec is not None else None for spec in parameters)
        products = [value.node for value in node.operands if any(spaces) and is_product(body, body.nodes[value.node])]
        return (
            (type.op.name, type.attributes, type.out, tuple(operand.shape for operand in type.operands)),
            spaces,
            tuple(batch_kind(body, product) for product in products),
        )
    return type, *parameters


def is_product(body: Body, node: Node) -> bool:
    """Whether it is a matrix that is a parameter times a vector."""
    return (
        node.type.op.name == "matmul"
        and [len(spec.shape) for spec in node.type.operands] == [2, 1]
        and parameter_in(body.nodes, node.operands[0]) is not None
        and parameter_in(body.nodes, node.operands[1]) is None
    )


def partly_read(body: Body) -> set[int]:
    """The nodes of which some reader sees a part: to it they are one value, wherever what they are made of lies."""
    read = [value for node in body.nodes for value in node.operands] + list(body.outputs)
    return {value.node for value in read if value.view is not None and value.view.out.size < value.view.root.size}


def split_repeats(body: Body, batches: Sequence[Sequence[int]]) -> list[list[int]]:
    """Split batches in which an operand repeats some value, so that in each part it does not, or is one value.

    `r1 * h1, r2 * h2, z1 * h1, z2 * h2` becomes `r1 * h1, r2 * h2` and `z1 * h1, z2 * h2`: no layout has h1 twice.
    """
    found: list[list[int]] = []
    for batch in batches:
        rest = list(batch)
        while rest:
            part = _without_repeats(body, rest)
            found.append(part)
            rest = [number for number in rest if number not in part]
    return found


def split_clashing(body: Body, batches: Sequence[Sequence[int]], clashing: Collection[int]) -> list[list[int]]:
    """Take the batches at positions `clashing` apart, but for products: one kernel for k nodes takes k copies."""
    found: list[list[int]] = []
    for at, batch in enumerate(batches):
        apart = at in clashing and not is_product(body, body.nodes[batch[0]])
        found += [[number] for number in batch] if apart else [list(batch)]
    return found


def _without_repeats(body: Body, batch: Sequence[int]) -> list[int]:
    """The first of a batch, and what can join it."""
    rows = {number: body.nodes[number].operands for number in batch}
    shared = [len(set(column)) == 1 for column in zip(*rows.values(), strict=True)]
    seen: list[set[Value]] = [set() for _ in shared]
    part = []
    for number, row in rows.items():
        if not any(key in before for key, before, one in zip(row, seen, shared, strict=True) if not one):
            part.append(number)
            for key, before in zip(row, seen, strict=True):
                before.add(key)
    return part
