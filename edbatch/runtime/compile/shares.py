"""The way back through reductions of lists: the rule of an op (`graph.op.Share`) as a kernel of lists."""

from __future__ import annotations

from functools import cache, partial
from typing import NamedTuple

import numpy as np

from edbatch.graph.cell.body import Body, Value, body_of, operands_of
from edbatch.graph.cell.derivative import Given
from edbatch.graph.cell.trace import Trace, traced
from edbatch.graph.op import Share
from edbatch.graph.spec import Spec
from edbatch.kernels.language.build import Builder
from edbatch.kernels.language.ir import Kernel
from edbatch.kernels.list_kernels import divide_rows, share_rows
from edbatch.kernels.program import OfLists
from edbatch.runtime.type_table import BoundType, TypeTable


class SharedOut(NamedTuple):
    """How the gradient of a type's results flows to the elements of its lists.

    Attributes:
        given: what that is computed of, in order; nothing: each element gets the gradient of its list.
        of_lists: what computes a row for each element, or, if the elements are not read, for each list.
    """

    given: tuple[Given, ...]
    of_lists: OfLists | None


def shared(type: BoundType, table: TypeTable) -> SharedOut:
    """How the gradient of a type's results flows on."""
    found: SharedOut | None = type.derivatives.get("shared")
    if found is None:
        rule, spec = type.type.op.gradient, type.type.out
        assert isinstance(rule, Share)
        if rule.weight is not None:
            of_lists = table.list_task(partial(_share_rows, rule, spec.dtype), type.type)
            found = SharedOut((Given.OPERAND, Given.GRADIENT, Given.RESULT), of_lists)
        elif rule.divided:
            found = SharedOut((Given.GRADIENT,), table.list_task(partial(divide_rows, spec.dtype.name), type.type))
        else:
            found = SharedOut((), None)
        type.derivatives["shared"] = found
    return found


@cache
def _share_rows(rule: Share, dtype: np.dtype, index_bits: int) -> Kernel:
    spec = Spec((), dtype)
    trace = Trace("share", dtype)
    result, x = trace.argument(spec), trace.argument(spec)
    assert rule.weight is not None
    weight = traced(trace, partial(rule.weight, result, x))
    body = body_of(trace, (spec, spec), [weight.id], 0)
    return share_rows(partial(_weight, body), rule.divided, dtype.name, index_bits)


def _weight(body: Body, make: Builder, result: int, x: int) -> int:
    """The value of a body of two arguments and element-wise ops of these and of numbers."""
    values = [result, x]
    for node in body.nodes[len(values) :]:
        op = node.type.op
        if op.scalar:
            given = dict(zip("xy", (values[x.node] for x in operands_of(node) if isinstance(x, Value)), strict=False))
            given |= {name: make.number(value) for name, value in node.type.attributes}
            values.append(make.expression(op.scalar, **given))
        else:
            values.append(make.number(float(op.name == "ones") if node.value is None else float(node.value)))
    return values[body.outputs[0].node]
