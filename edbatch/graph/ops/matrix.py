"""Matrix products."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from edbatch.errors import EdBatchError, Place
from edbatch.graph.cell.trace import Trace
from edbatch.graph.expression import Expression
from edbatch.graph.model.parameters import Parameter
from edbatch.graph.node_type import parameter_of
from edbatch.graph.op import Op, Sample, composite, declare, expect
from edbatch.graph.op_callers import Attributes, binary, recorded
from edbatch.graph.operand import Operand
from edbatch.graph.ops.declaring import row_of_two
from edbatch.graph.ops.reduce import sum
from edbatch.graph.ops.shape import TRANSPOSE, reshape, transpose, unsqueeze
from edbatch.graph.record import constant_node, graph_of, record, to_node, to_operand
from edbatch.graph.sources import PARAMETER, ZEROS
from edbatch.graph.spec import Shape
from edbatch.graph.views import NODE_BITS, steps_of


def _matmul_shape(a: Shape, b: Shape) -> Shape:
    expect(len(a) in (1, 2) and len(b) in (1, 2), "expected vectors or matrices")
    expect(a[-1] == b[0], f"inner sizes differ: {a[-1]} columns (or entries) times {b[0]} rows (or entries)")
    return a[:-1] + b[1:]


def _affine_shape(weight: Shape, x: Shape, bias: Shape) -> Shape:
    expect(bias == (out := _matmul_shape(weight, x)), f"expected a bias of shape {out}")
    return out


def _matmul_gradient(g: Expression, out: Expression, a: Any, b: Any) -> tuple[Expression, Expression]:
    if a.ndim == b.ndim == 1:
        return g * b, g * a
    if b.ndim == 1:
        return outer(g, b), g @ a
    if a.ndim == 1:
        return b @ g, outer(a, g)
    return g @ b.T, a.T @ g


MATMUL = declare(
    Op(
        "matmul",
        _matmul_shape,
        gradient=_matmul_gradient,
        samples=tuple(map(Sample, [((3, 4), (4,)), ((3, 4), (4, 2)), ((4,), (4, 2)), ((4,), (4,))])),
    )
)
AFFINE = composite(
    "affine",
    _affine_shape,
    lambda weight, x, bias: record(MATMUL, (weight, x)) + bias,
    tuple(map(Sample, [((3, 4), (4,), (3,)), ((3, 4), (4, 2), (3, 2)), ((4,), (4,), ()), ((4,), (4, 2), (2,))])),
)


def _stack_shape(a: Shape, b: Shape) -> Shape:
    expect(len(a) == len(b) == 3 and a[2] == b[1], "expected two stacks of matrices whose inner sizes are equal")
    expect(a[0] == b[0] or 1 in (a[0], b[0]), "expected stacks of as many matrices, or of one")
    return (max(a[0], b[0]), a[1], b[2])


MATMUL_STACK: Op = declare(
    Op(
        "matmul_stack",
        _stack_shape,
        gradient=lambda g, out, a, b: (
            record(MATMUL_STACK, (g, transpose(b, (0, 2, 1)))),
            record(MATMUL_STACK, (transpose(a, (0, 2, 1)), g)),
        ),
        samples=tuple(map(Sample, [((2, 3, 4), (2, 4, 2)), ((3, 1, 2), (1, 2, 3)), ((1, 2, 2), (2, 2, 1))])),
    )
)
# Rows times a transposed parameter, which is part of the type, so that all rows of a batch are one product.
LINEAR = composite(
    "linear",
    lambda rows, weight: _matmul_shape(rows, weight[::-1]),
    lambda rows, weight: record(MATMUL, (rows, transpose(weight))),
    (Sample(((2, 4), (3, 4))), Sample(((1, 4), (3, 4)))),
)


def _outer_shape(a: Shape, b: Shape) -> Shape:
    expect(len(a) == 1 == len(b), "expected two vectors")
    return a + b


OUTER = composite("outer", _outer_shape, lambda a, b: unsqueeze(a, 1) * b, (Sample(((3,), (4,))),))


def _dot_shape(a: Shape, b: Shape) -> Shape:
    expect(len(a) == 1 and a == b, "expected two vectors of one length")
    return ()


DOT = composite("dot", _dot_shape, lambda a, b: sum(a * b), (Sample(((4,), (4,))),))
dot = row_of_two(
    DOT, "Inner product of two vectors of one length", "eb.dot(eb.input([1.0, 2.0]), eb.input([3.0, 4.0])) -> 11.0"
)
_HAVE_AXES = (Operand, np.ndarray)


def _of_matrices(a: Any, b: Any) -> Expression | None:
    """The products of two matrices, or of stacks of them; None of anything else."""
    if not (isinstance(a, Expression) and isinstance(b, Expression) and a.ndim == b.ndim == 2):
        return _of_stacks(a, b)
    weight = None if isinstance(b.graph, Trace) else _transposed(b)
    return _matrices_call(a, b) if weight is None or a.shape[1] != b.shape[0] else _linear_call(a, weight)


def _transposed(x: Expression) -> Parameter | None:
    """The parameter whose transpose a matrix is; None: it is something else."""
    if (steps_of(x.id >> NODE_BITS) != _TURNED) or (type := x.graph.type_of(x)).op is not PARAMETER:
        return None
    return parameter_of(type.attributes[0][1])


_TURNED = ((TRANSPOSE, (("axes", (1, 0)),)),)


def _of_stacks(a: Any, b: Any) -> Expression | None:
    """The products of two stacks of matrices, as NumPy pairs them; None if there is no stack."""
    if not any([isinstance(x, _HAVE_AXES) and x.ndim > 2 for x in (a, b)]):  # noqa: C419 (a generator takes longer)
        return None
    if a.__class__ is b.__class__ is Expression and a.ndim == b.ndim == 3 and a.shape[0] == b.shape[0]:
        return _stacks_call(a, b) if a.shape[2] == b.shape[1] else None
    graph = graph_of("matmul", (a, b))
    a, b = (to_operand("matmul", graph, x) for x in (a, b))
    place = Place(lambda: f"matmul({a.spec!r}, {b.spec!r})")
    expect(a.ndim > 0 and b.ndim > 0, f"{place}: expected vectors, matrices or stacks of these")
    inner = b.shape[-2 if b.ndim > 1 else 0]
    expect(a.shape[-1] == inner, f"{place}: inner sizes differ: {a.shape[-1]} and {inner}")
    if b.ndim <= 2:  # one product of all rows
        rows = reshape(to_node(graph, a), (-1, a.shape[-1]))
        return reshape(matmul(rows, b), (*a.shape[:-1], *b.shape[1:]))
    try:
        lead = a.shape[:-2] if a.shape[:-2] == b.shape[:-2] else np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise EdBatchError(f"{place}: stacks of {a.shape[:-2]} and {b.shape[:-2]} do not broadcast") from None
    left, right = (to_node(graph, x) for x in (a, b))
    left = reshape(left, (1, -1)) if a.ndim == 1 else left
    products = _stacks_call(_members(left, lead), _members(right, lead))
    return reshape(products, (*lead, *a.shape[-2:-1], b.shape[-1]))


def _members(x: Expression, lead: Shape) -> Expression:
    """A stack as [1 or all, rows, columns]; what broadcasts along some of its axes is written out."""
    count = math.prod(x.shape[:-2])
    if count not in (1, math.prod(lead)):
        return _members(x + constant_node(x.graph, ZEROS, (*lead, *x.shape[-2:]), inner=True), lead)
    return reshape(x, (count, *x.shape[-2:]))


_stacks_call = binary(MATMUL_STACK)
_matrices_call = binary(MATMUL)
_linear_call = binary(LINEAR)
outer = binary(OUTER)


@recorded(MATMUL, 2, otherwise=_of_matrices)
def matmul(a: Any, b: Any) -> Attributes:
    """Matrix product `a @ b` of vectors, matrices and stacks of matrices.

    With the same parameter on one side (`W @ x`, and of matrices `X @ W.T`), a batch is ONE product of all rows; with
    operands that differ per sample (`x @ y`) it is one batched product. Of stacks, the matrices are multiplied pair by
    pair, as NumPy does, by one node; as one matrix, if only the left operand is a stack.

    Args:
        a: [m, k] or [k], or a stack [..., m, k].
        b: [k, n] or [k], or a stack [..., k, n].

    Returns:
        [m, n], with the axis left out that an operand does not have; before them the axes of the stacks, broadcast.

    Raises:
        EdBatchError: inner sizes differ, an operand has no axes, or stacks do not broadcast.

    Example: eb.matmul(eb.input([[1.0, 2.0], [3.0, 4.0]]), eb.input([1.0, 1.0])) -> [3. 7.]
    """
    return {}


@recorded(AFFINE, 3)
def affine(weight: Any, x: Any, bias: Any) -> Attributes:
    """`weight @ x + bias` as one node; the bias has the shape of the product.

    Raises:
        EdBatchError: the shapes do not fit: [m, k] or [k] times [k] or [k, n].

    Example: eb.affine(eb.input([[1.0, 1.0]]), eb.input([1.0, 2.0]), eb.input([0.5])) -> [3.5]
    """
    return {}


for _class in (Expression, Parameter):
    setattr(_class, "__matmul__", matmul)  # noqa: B010 (mypy knows that they have none)
    setattr(_class, "__rmatmul__", lambda self, other: matmul(other, self))  # noqa: B010
