"""Pass: a batch whose operands lie side by side becomes one node; its nodes' values become slices of that node's.

Weights of products, and parameters of element-wise ops, are stacked in place in the order of the batch. A concatenation
of what lies side by side is that memory, and needs no node.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from edbatch.graph.cell.batches import is_product, partly_read
from edbatch.graph.cell.body import Body, Node, Nodes, Value, operands_of
from edbatch.graph.cell.gradient_sum import stops
from edbatch.graph.cell.stacking import can_stack, stacked
from edbatch.graph.node_type import node_type
from edbatch.graph.op import OPS, Kind
from edbatch.graph.ops.shape import INDEX, RESHAPE, STOP_GRADIENT
from edbatch.graph.spec import ParameterSpec, Shape, Spec
from edbatch.graph.views import columns_of


def merge_batches(body: Body, batches: Sequence[Sequence[int]]) -> Body:
    """Run batches as one node each, where that takes no copy.

    Args:
        body: without `affine` nodes of parameters.
        batches: every computing node once, in an order in which operands precede their users; each batch in the order
            in which its nodes are to lie in memory.
    """
    merging = _Merging(body)
    for batch in batches:
        merging.add(batch)
    outputs = tuple(merging.value(value) for value in body.outputs)
    return Body(body.arguments, tuple(merging.nodes), outputs, body.payloads)


class _Merging:
    """The body as it grows.

    Attributes:
        nodes: of the new body.
        values: what nodes of the old body are in the new one.
        concatenated: concatenations in the new body: the column at which each operand begins.
    """

    def __init__(self, body: Body) -> None:
        self.old = body
        self.nodes = Nodes()
        self.values: dict[int, Value] = {}
        self.concatenated: dict[int, dict[Value, int]] = {}
        self.returned = {value.node for value in body.outputs}
        self.whole = self.returned | partly_read(body)  # gradients flow into all that such a node is made of
        for number, node in enumerate(body.nodes):
            if node.type.op.kind is Kind.SOURCE:
                self.values[number] = self.nodes.add(node)

    def add(self, batch: Sequence[int]) -> None:
        """The nodes of a batch: as one if it can be, else one after the other."""
        nodes = [self.old.nodes[number] for number in batch]
        merged = None
        if len(batch) > 1:
            if is_product(nodes[0]):
                merged = self._product(nodes)
            elif nodes[0].type.op.elementwise and self.returned.isdisjoint(batch):
                merged = self._elementwise(nodes)
        if merged is None:
            for number in batch:
                self.values[number] = self._alone(number)
            return
        begin = 0
        for number, node in zip(batch, nodes, strict=True):
            end = begin + node.type.out.size
            self.values[number] = self._slice(merged, begin, end)
            begin = end

    def value(self, old: Value) -> Value:
        """What a value of the old body is in the new one."""
        if old.node not in self.values:  # only concatenations and the like are made when they are needed
            self.values[old.node] = self._placed(old.node)
        return self.nodes.seen(self.values[old.node], old.steps)

    def _alone(self, number: int) -> Value:
        node = self.old.nodes[number]
        operands = tuple(map(self.value, node.operands))
        return self.nodes.add(node.of(operands))

    def _placed(self, number: int) -> Value:
        """A node that puts its operands side by side; if they are so already, what they are parts of."""
        node = self.old.nodes[number]
        values = list(map(self.value, node.operands))
        joins = len(values) == len(node.type.operands) and dict(node.type.attributes).get("axis") == 0
        if joins and number not in self.whole:
            whole = self._joined(values)
            if whole is not None:
                return self._reshaped(whole, node.type.out.shape)
        made = self._alone(number)
        if joins and number not in self.whole and len(node.type.out.shape) == 1:
            begins = [0, *accumulate(self.nodes.spec(value).size for value in values)][:-1]
            self.concatenated[made.node] = dict(zip(values, begins, strict=True))
            self.nodes[made.node] = self.nodes[made.node]._replace(cuts=tuple(begins[1:]))
        return made

    def _product(self, nodes: Sequence[Node]) -> Value | None:
        weights = [spec for node in nodes for spec in node.type.operands if isinstance(spec, ParameterSpec)]
        whole = stacked(weights)
        if whole is None:
            return None
        type = node_type(OPS["matmul"], (), (whole, nodes[0].type.operands[1]))
        cuts = np.cumsum([spec.shape[0] for spec in weights])[:-1].tolist()
        return self.nodes.add(Node(type, (self.value(nodes[0].operands[0]),), cuts=tuple(cuts)))

    def _elementwise(self, nodes: Sequence[Node]) -> Value | None:
        """One node for vectors of one size; an operand is single numbers, the same for all, or all lie side by side."""
        type = nodes[0].type
        if len(type.out.shape) != 1:
            return None
        columns = list(zip(*map(operands_of, nodes), strict=True))
        operands: list[Value | list[ParameterSpec]] = []
        for column in columns:
            specs = [x for x in column if isinstance(x, ParameterSpec)]
            values = [self.value(x) for x in column if isinstance(x, Value)]
            if specs:
                one = specs[0].size == 1 and len(set(specs)) == 1
                if not one and (specs[0].shape != type.out.shape or not can_stack(specs)):
                    return None
                operands.append(specs[:1] if one else specs)
                continue
            spec = self.nodes.spec(values[0])
            one = spec.size == 1 and len(set(values)) == 1
            whole = values[0] if one else self._joined(values) if spec.shape == type.out.shape else None
            if whole is None:
                return None
            operands.append(whole)
        found: list[Spec] = []
        for operand in operands:
            spec = self.nodes.spec(operand) if isinstance(operand, Value) else _stack(operand)
            found.append(spec)
        merged = node_type(type.op, type.attributes, tuple(found))
        if merged.out.size != len(nodes) * type.out.size:  # all operands are single numbers: equal nodes, not merged
            return None
        cuts = tuple(range(type.out.size, merged.out.size, type.out.size))
        return self.nodes.add(Node(merged, tuple(x for x in operands if isinstance(x, Value)), cuts=cuts))

    def _joined(self, values: Sequence[Value]) -> Value | None:
        """What values that lie side by side, in this order, are together: a vector. None if they do not.

        It is one value, through which gradients flow or do not: what is stopped is not joined with what is not.
        """
        stopped = [stops(value.view) for value in values]
        found = self._memory(values, in_place=any(stopped) == all(stopped))
        return self.nodes.seen(found, ((STOP_GRADIENT, ()),)) if found is not None and all(stopped) else found

    def _memory(self, values: Sequence[Value], in_place: bool) -> Value | None:
        """`in_place`: where they are, and not only in a concatenation of them."""
        places = [self._columns(value) for value in values]
        first = places[0]
        if in_place and first is not None and all(place is not None and place[0] == first[0] for place in places):
            ends = [place[1] + place[2] for place in places if place is not None]
            if [place[1] for place in places[1:] if place is not None] == ends[:-1]:
                return self._slice(Value(first[0]), first[1], ends[-1])
        for node, begins in self.concatenated.items():
            found = [begins.get(value, -1) for value in values]
            ends = [begin + self.nodes.spec(value).size for begin, value in zip(found, values, strict=True)]
            if found[0] >= 0 and found[1:] == ends[:-1]:
                return self._slice(Value(node), found[0], ends[-1])
        return None

    def _columns(self, value: Value) -> tuple[int, int, int] | None:
        """The node whose memory it is, the column at which it begins there, its entries; None if it is scattered."""
        place = columns_of(value.view) if value.view is not None else (0, self.nodes.spec(value).size)
        return None if place is None else (value.node, *place)

    def _slice(self, whole: Value, begin: int, end: int) -> Value:
        """Entries of a node as a vector."""
        size = self.nodes.spec(whole).size
        flat = self._reshaped(whole, (size,))
        return (
            flat if (begin, end) == (0, size) else self.nodes.seen(flat, ((INDEX, (("index", ((begin, end, 1),)),)),))
        )

    def _reshaped(self, value: Value, shape: Shape) -> Value:
        """Contiguous entries in another shape."""
        if self.nodes.spec(value).shape == shape:
            return value
        return self.nodes.seen(value, ((RESHAPE, (("shape_to", shape),)),))


def _stack(specs: Sequence[ParameterSpec]) -> ParameterSpec:
    if len(specs) == 1:
        return specs[0]
    whole = stacked(specs)
    assert whole is not None
    return whole
