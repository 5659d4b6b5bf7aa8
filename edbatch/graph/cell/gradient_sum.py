"""Where several gradients meet: they are added up, each at the place that was read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

from edbatch.graph.expression import Expression
from edbatch.graph.node_type import node_type
from edbatch.graph.op import gradient_of
from edbatch.graph.ops.inputs import zeros
from edbatch.graph.ops.place import concatenate
from edbatch.graph.ops.reduce import sum
from edbatch.graph.ops.segments import segment_sum
from edbatch.graph.ops.shape import STOP_GRADIENT, reshape
from edbatch.graph.spec import Shape, Spec
from edbatch.graph.views import View


def fit(gradient: Expression, of: Spec, each: bool) -> Expression:
    """A gradient in the shape of its operand: summed over the axes that were broadcast, or broadcast itself.

    Args:
        of: the operand's spec.
        each: whether it was read for each element of a list. A gradient that all elements have stays one.
    """
    shape = of.shape
    if each and not of.each:
        gradient = segment_sum(gradient)
    ahead = gradient.ndim - len(shape)
    if ahead > 0:
        gradient = sum(gradient, tuple(range(ahead)))
    repeated = [
        axis for axis, (n, to) in enumerate(zip(gradient.shape, shape, strict=False)) if to == 1 < n and ahead >= 0
    ]
    if repeated:
        gradient = sum(gradient, repeated, keepdims=True)
    return gradient if gradient.shape == shape else zeros(shape) + gradient


def stops(view: View | None) -> bool:
    """Whether no gradient flows through a view."""
    return view is not None and any(op is STOP_GRADIENT for op, _ in view.steps)


def only(gradient: Expression, intervals: Sequence[tuple[int, int]]) -> Expression:
    """A gradient of a vector with zeros, whatever is there, outside some intervals of its entries, given in order."""
    return _side_by_side(gradient.spec, [(interval, gradient[slice(*interval)]) for interval in intervals])


def total(spec: Spec, flows: Sequence[tuple[View | None, Expression]]) -> Expression | None:
    """The gradient of a value from the gradients of what was read of it; None if nothing was.

    Args:
        spec: of the value.
        flows: (the view it was read through, gradient of what the view shows).
    """
    found = [gradient for view, gradient in flows if view is None]
    placed: dict[tuple[int, int], list[Expression]] = {}
    for view, gradient in flows:
        if view is None:
            continue
        if view.contiguous:
            placed.setdefault((view.first, view.first + view.out.size), []).append(gradient)
        else:
            found.append(_through(view, gradient))
    intervals = sorted(placed)
    while intervals:  # side by side as many as there is room for, as the parts of a split are
        begin, layer, left = 0, [], []
        for interval in intervals:
            if interval[0] >= begin:
                layer.append(interval)
                begin = interval[1]
            else:
                left.append(interval)
        # Of the same entries, in the shape that the first view gives them.
        sums = [reduce(add, [_shaped(x, placed[at][0].shape) for x in placed[at]]) for at in layer]
        found.append(_side_by_side(spec, list(zip(layer, sums, strict=True))))
        intervals = left
    return reduce(add, found) if found else None  # by additions, which fuse


def _side_by_side(spec: Spec, layer: list[tuple[tuple[int, int], Expression]]) -> Expression:
    """A gradient of `spec`, zero outside the given intervals of its entries."""
    parts: list[Any] = []
    at = 0
    for (begin, end), gradient in layer:
        if begin > at:
            parts.append(zeros(begin - at))
        parts.append(_shaped(gradient, (end - begin,)))
        at = end
    if at < spec.size:
        parts.append(zeros(spec.size - at))
    return _shaped(parts[0] if len(parts) == 1 else concatenate(parts), spec.shape)


def _shaped(gradient: Expression, shape: Shape) -> Expression:
    """Reshaped if need be: a view that shows all as it is would only keep ops from being fused."""
    return gradient if gradient.shape == shape else reshape(gradient, shape)


def _through(view: View, gradient: Expression) -> Expression:
    """Back through a view, by the rules of its steps."""
    seen = [view.root]
    for op, attributes in view.steps[:-1]:
        seen.append(node_type(op, attributes, (seen[-1],)).out)
    for (op, attributes), spec in zip(reversed(view.steps), reversed(seen), strict=True):
        rule = gradient_of(op, f"{op.name}({spec!r})")
        gradient = rule(gradient, None, spec, **dict(attributes))  # which reads no more than a shape
    return gradient
