"""Pass: a batch whose operands lie side by side becomes one node; its nodes' values become slices of that node's.

Weights of products, and parameters of element-wise ops, are stacked in place in the order of the batch. A concatenation
of what lies side by side is that memory, and needs no node.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import add

import numpy as np

from edbatch.graph.cell.batches import is_product, partly_read
from edbatch.graph.cell.body import Body, Node, Nodes, Value, parameter_in
from edbatch.graph.cell.gradient_sum import stops
from edbatch.graph.cell.stacking import can_stack, stacked
from edbatch.graph.op import OPS, Kind
from edbatch.graph.ops.shape import INDEX, RESHAPE, STOP_GRADIENT
from edbatch.graph.spec import ParameterSpec, Shape
from edbatch.graph.views import columns_of


def merge_batches(body: Body, batches: Sequence[Sequence[int]]) -> Body:
    """Run batches as one node each, where that takes no copy.

    Args:
        body: without `affine` nodes.
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
    """

    def __init__(self, body: Body) -> None:
        self.old = body
        self.nodes = Nodes()
        self.values: dict[int, Value] = {}
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
            if is_product(self.old, nodes[0]):
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
        (value,) = self.nodes.moved([old], self.values)
        return value

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
        return self._alone(number)

    def _product(self, nodes: Sequence[Node]) -> Value | None:
        weights = [spec for node in nodes if (spec := parameter_in(self.old.nodes, node.operands[0])) is not None]
        whole = stacked(weights)
        if whole is None:
            return None
        cuts = np.cumsum([spec.shape[0] for spec in weights])[:-1].tolist()
        factors = self.nodes.parameter(whole), self.value(nodes[0].operands[1])
        return self.nodes.made(OPS["matmul"], factors, cuts=tuple(cuts))

    def _elementwise(self, nodes: Sequence[Node]) -> Value | None:
        """One node for vectors of one size; an operand is single numbers, the same for all, or all lie side by side."""
        type = nodes[0].type
        if len(type.out.shape) != 1:
            return None
        operands: list[Value | list[ParameterSpec]] = []  # parameters are not stacked in vain
        for column in zip(*[node.operands for node in nodes], strict=True):
            specs = [known for x in column if (known := parameter_in(self.old.nodes, x)) is not None]
            values = list(map(self.value, column))
            if len(specs) == len(column):
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
        size = len(nodes) * type.out.size
        sizes = [sum(spec.size for spec in x) if isinstance(x, list) else self.nodes.spec(x).size for x in operands]
        if max(sizes) != size:  # all operands are single numbers: equal nodes, not merged
            return None
        cuts = tuple(range(type.out.size, size, type.out.size))
        given = [self._parameter(x, cuts) if isinstance(x, list) else x for x in operands]
        return self.nodes.made(type.op, given, type.attributes, cuts=cuts)

    def _parameter(self, specs: list[ParameterSpec], cuts: tuple[int, ...]) -> Value:
        whole = stacked(specs)
        return self.nodes.parameter(specs[0]) if whole is None else self.nodes.parameter(whole, cuts)

    def _joined(self, values: Sequence[Value]) -> Value | None:
        """What values that lie side by side, in this order, are together: a vector. None if they do not.

        It is one value, through which gradients flow or do not: what is stopped is not joined with what is not.
        """
        stopped = {stops(value.view) for value in values}
        nodes = {value.node for value in values}
        places = [
            columns_of(value.view) if value.view is not None else (0, self.nodes.spec(value).size) for value in values
        ]
        if len(stopped) > 1 or len(nodes) > 1 or None in places:
            return None
        begins, sizes = zip(*[place for place in places if place is not None], strict=True)
        ends = list(map(add, begins, sizes))
        if list(begins[1:]) != ends[:-1]:
            return None
        found = self._slice(Value(values[0].node), begins[0], ends[-1])
        return self.nodes.seen(found, ((STOP_GRADIENT, ()),)) if True in stopped else found

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
