"""How a node of a run goes through its operands: along which axes, and where their entries lie."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from edbatch.graph.cell.body import Body, Node, Value
from edbatch.graph.cell.passes.entries import Strides, along, breaks, broadcast, by_rows, seen, shown, with_gaps
from edbatch.graph.op import Kind
from edbatch.graph.ops.shape import RESHAPE
from edbatch.graph.sources import PARAMETER
from edbatch.graph.spec import Shape, Spec

#: Stands for the length of lists: a prime, larger than the entries of any value.
LENGTH = 2**61 - 1


@dataclass(eq=False)
class GoesThrough:
    """How a node goes through its operands.

    Args:
        shape: the axes that it goes along; the first of `LENGTH`, if it reads elements of lists.
        reduced: per axis, whether it makes one number of the entries along it.
        strides: per operand, where its entries lie along these axes.
        firsts: per operand, where the first entry is in the value that it is seen of.
        numbers: strides of what else tells entries apart: "index", their number on the first axis, "position", that of
            all.
        along: of an op that picks, the distance between what it may show.
        is_plain: whether it is known to go through all operands entry by entry, as these are numbered.
    """

    shape: Shape
    reduced: tuple[bool, ...]
    strides: tuple[Strides, ...]
    firsts: tuple[int, ...]
    numbers: dict[str, Strides]
    along: int = 0
    is_plain: bool = False

    @cached_property
    def size(self) -> int:
        """Entries that it goes through."""
        return math.prod(self.shape)

    @cached_property
    def breaks(self) -> list[int]:
        """Where axes have to be told apart; see `entries.breaks`."""
        if self.is_plain:
            return []
        told = [*self.strides, *self.numbers.values()]
        found = breaks(self.shape, [*told, self._kept] if any(self.reduced) else told)
        rest = self.size // LENGTH  # elements do not lie evenly
        return [rest, *found] if rest > 1 and rest not in found else found

    @property
    def _kept(self) -> Strides:
        """Strides that tell axes which are reduced from others."""
        return tuple(stride * (not inside) for stride, inside in zip(by_rows(self.shape), self.reduced, strict=True))

    def reduced_along(self, sizes: list[int]) -> list[bool]:
        """Per axis of these sizes, whether it is reduced."""
        strides = along(self.shape, self._kept, sizes)
        assert strides is not None
        return [stride == 0 and size > 1 for stride, size in zip(strides, sizes, strict=True)]

    def of_each(self, rows: Sequence[int], reduced: bool) -> GoesThrough:
        """The same of each element of lists.

        Args:
            rows: per operand, the entries of its row for an element; 0: there is one for all.
            reduced: whether elements are reduced.
        """
        strides = tuple((row, *one) for row, one in zip(rows, self.strides, strict=True))
        numbers = {name: (0, *one) for name, one in self.numbers.items()}
        shape, over = (LENGTH, *self.shape), (reduced, *self.reduced)
        return GoesThrough(shape, over, strides, self.firsts, numbers, self.along)


def goes_through(body: Body, node: Node, strides_of: Callable[[Value], Strides] | None = None) -> GoesThrough:
    """How a node of a run goes through its operands.

    Args:
        strides_of: how the value that an operand is seen of lies; by default as if nothing were known of parameters
            that are stored by columns, but which axes they have.
    """
    type = node.type
    if type.op.scalar and not type.op.payload and _is_plain(body, node):
        rows, count = by_rows(type.out.shape), len(node.operands)
        return GoesThrough(type.out.shape, (False,) * len(rows), (rows,) * count, (0,) * count, {}, is_plain=True)
    roots = [body.nodes[x.node].type.out for x in node.operands]
    through = _through(body, node, roots, strides_of)
    if any(spec.each for spec in roots):
        return through.of_each([spec.size if spec.each else 0 for spec in roots], type.op.segments)
    return through


def _through(
    body: Body, node: Node, roots: Sequence[Spec], strides_of: Callable[[Value], Strides] | None
) -> GoesThrough:
    """The same, of one element.

    Args:
        roots: per operand, the spec of what it is seen of.
    """
    found = []
    for operand, spec in zip(node.operands, roots, strict=True):
        lies = _guess(body, operand, spec.shape) if strides_of is None else strides_of(operand)
        found.append(_seen(operand, node, spec.shape, lies))
    type, op = node.type, node.type.op
    if op.picks:
        return _picked(found, **dict(type.attributes))
    shape = type.out.shape if op.scalar or (op.kind is Kind.VIEW and op is not RESHAPE) else found[0][0]
    axes = dict(type.attributes)["axes"] if op.reduction and not op.segments else ()
    return GoesThrough(
        shape,
        tuple(axis in axes and size > 1 for axis, size in enumerate(shape)),
        tuple(broadcast(of, strides, shape) for of, strides, _ in found),
        tuple(first for *_, first in found),
        _numbers(op.scalar, shape) if op.payload else {},
    )


def _is_plain(body: Body, node: Node) -> bool:
    """Whether all operands are values of the result's shape, as they were computed."""
    if any(view is not None for _, view in node.operands):
        return False
    types = [body.nodes[number].type for number, _ in node.operands]
    out = node.type.out  # of which elements do not lie evenly
    return not out.each and all(type.out.shape == out.shape and type.op is not PARAMETER for type in types)


def _picked(seen: list[tuple[Shape, Strides, int]], axis: int = 0) -> GoesThrough:
    """How an op that picks goes through what it picks from, and through the indices, if they are an operand."""
    (shape, strides, first), *indices = seen
    if not indices:
        return GoesThrough(shape[1:], (False,) * (len(shape) - 1), (strides[1:],), (first,), {}, strides[0])
    ((shape, of_indices, first_index),) = indices
    others = tuple(0 if at == axis else stride for at, stride in enumerate(strides))
    found = (broadcast(shape, others, shape), broadcast(shape, of_indices, shape))
    return GoesThrough(shape, (False,) * len(shape), found, (first, first_index), {}, strides[axis])


def _numbers(scalar: str, shape: Shape) -> dict[str, Strides]:
    """What an expression reads of where an entry is."""
    found = {"index": tuple(int(axis == 0) for axis in range(len(shape))), "position": by_rows(shape)}
    return {name: strides for name, strides in found.items() if name in scalar}


def _seen(operand: Value, node: Node, shape: Shape, strides: Strides) -> tuple[Shape, Strides, int]:
    """What is seen of an operand; by the copy of a view, as the view shows it."""
    view, op = operand.view, node.type.op
    if op.kind is not Kind.VIEW or op is RESHAPE:
        return seen(view, shape, strides)
    attributes = dict(node.type.attributes)
    return shown(lambda x: op.forward(x if view is None else view.look(x), **attributes), shape, strides)


def _guess(body: Body, operand: Value, shape: Shape) -> Strides:
    is_parameter = body.nodes[operand.node].type.op is PARAMETER
    return with_gaps(shape) if is_parameter and len(shape) > 1 else by_rows(shape)
