"""Losses: scalars that say how far a value is from what it should be."""

from __future__ import annotations

from typing import Any

import numpy as np

from edbatch.base.lazy import LazyModule
from edbatch.errors import EdBatchError, shown
from edbatch.graph.array import array
from edbatch.graph.array_graph import each
from edbatch.graph.cell.trace import Payload, Trace
from edbatch.graph.expression import Expression
from edbatch.graph.expression_array import ExpressionArray, is_one
from edbatch.graph.integers import FEW, is_integers
from edbatch.graph.model.exchange import from_dlpack
from edbatch.graph.model.parameters import Parameter
from edbatch.graph.op import Op, Sample, composite, declare, expect
from edbatch.graph.op_callers import Attributes, binary, indexed, recorded
from edbatch.graph.operand import Operand
from edbatch.graph.ops.declaring import elementwise_op, row_of_two
from edbatch.graph.ops.elementwise import abs, add, exp, log, maximum2, minimum2, multiply, relu, square, where
from edbatch.graph.ops.matrix import dot
from edbatch.graph.ops.normalize import log_softmax
from edbatch.graph.ops.reduce import max, mean, sum
from edbatch.graph.ops.shape import reshape, stop_gradient
from edbatch.graph.record import checked_index, checked_label, checked_number, number, to_expression, to_operand
from edbatch.graph.spec import Shape

inputs = LazyModule("edbatch.graph.ops.inputs")  # which has gradients that are made here


def _vector_and_index(shape: Shape, **_: Any) -> Shape:
    expect(len(shape) == 1, "expected a vector")
    return ()


def _same_shapes(a: Shape, b: Shape, **_: Any) -> Shape:
    expect(a == b, "expected two operands of one shape; a row of an array for each of several expressions: eb.array(x)")
    return ()


def _pairs(*given: Any, **domain: Any) -> tuple[Sample, ...]:
    """Samples of two operands of one shape; `given`: their attributes, or none."""
    return tuple(Sample((shape, shape), *given, **domain) for shape in [(4,), (), (2, 3)])


def unpick(x: Expression, index: Any, size: int, place: str = "unpick") -> Expression:
    """Zeros [size, *shape of x] with x at `index`: the transpose of `pick`; `place` is for errors."""
    if index.__class__ is not int or not 0 <= index < size:
        x, index = each(x, index)
        index = checked_index(index, size, place)
    return _unpick_call(x, size, index)


def _picked_shape(shape: Shape) -> Shape:
    expect(len(shape) > 0, "expected at least one axis")
    return shape[1:]


PICK = declare(
    Op(
        "pick",
        _picked_shape,
        payload=1,
        picks=True,
        gradient=lambda g, out, x, index: unpick(g, index, x.shape[0]),
        samples=(Sample(((5,),), payload=(5,)), Sample(((4, 3),), payload=(4,))),
    )
)
UNPICK = declare(
    Op(
        "unpick",
        lambda shape, size: (size, *shape),
        payload=1,
        scalar="x if index == integer else 0",
        gradient=lambda g, out, x, index, size: pick(g, index),
        samples=(Sample(((),), {"size": 5}, payload=(5,)), Sample(((3,),), {"size": 4}, payload=(4,))),
    )
)
_pick = indexed(PICK)
_unpick_call = recorded(UNPICK)(lambda x, size, index: {"size": size})


_LARGE = 8192  # entries
_BLOCK = 1024


def _pick_of_large(x: Expression, index: Any) -> Expression:
    """From a view of some rows: the gradient of each pick is of the size of what it picks from.

    All blocks have as many rows, so that picks stay one type, and there are few: a view of each row would do, but views
    are never forgotten.
    """
    rows = x.spec.shape[0]
    block = -(-_BLOCK * rows // x.spec.size)
    if rows <= 2 * block:
        return _pick(x, index)
    if isinstance(index, Payload):  # known later
        return _pick(x, index)  # type: ignore[arg-type]
    if is_integers(index):
        return array([_pick_of_large(x, one) for one in index.tolist()])
    if index.__class__ is not int or not 0 <= index < rows:
        index = checked_index(index, rows, f"pick({x.spec!r}, {shown(index)})")
    begin = min(index - index % block, rows - block)
    return _pick(x[begin : begin + block], index - begin)


def pick(x: Any, index: int) -> Expression:
    """Entry (or row) `index` of `x`; picks of different entries are one type and one batch.

    Args:
        x: expression or parameter with at least one axis; of a large one, too, as quick as a look-up.
        index: on the first axis; negative counts from the end.

    Raises:
        EdBatchError: the index is out of range.

    Example: eb.pick(eb.input([1.0, 2.0]), 1) -> 2.0
    """
    if is_one(x):
        return _pick_of_large(x, index) if x.spec.size > _LARGE and x.graph.__class__ is not Trace else _pick(x, index)
    if isinstance(x, Parameter):
        return inputs.lookup(x, index)
    return _pick(x, index)


def _cross_entropy(x: Any, label: Any) -> Expression:
    top = stop_gradient(max(x, keepdims=True))
    # Of every term first: the difference of two large ones is not exact.
    return reshape(log(sum(exp(x - top), keepdims=True)) - (pick(x, label) - top), ())


def _hinge(x: Any, label: Any, margin: float) -> Expression:
    is_label = unpick(number(x.graph, 1), label, x.shape[0])
    return sum(where(is_label, 0, relu(x - pick(x, label) + margin)))


CROSS_ENTROPY = composite(
    "cross_entropy", _vector_and_index, _cross_entropy, (Sample(((5,),), payload=(5,)),), payload=1
)
HINGE = composite(
    "hinge",
    _vector_and_index,
    _hinge,
    (Sample(((5,),), {"margin": 1.0}, payload=(5,)), Sample(((3,),), {"margin": 0.3}, payload=(3,))),
    payload=1,
)
_cross_entropy_call = indexed(CROSS_ENTROPY, checked_label)
_hinge_call = recorded(HINGE)(lambda x, margin, label: {"margin": checked_number("hinge: margin", margin)})


def _listed(label: Any) -> Any:
    """A list of integers as an array of them: a label for each of several expressions; anything else as it is."""
    is_list = label.__class__ in (list, tuple)
    if is_list and all([isinstance(x, int | np.integer) and not isinstance(x, bool) for x in label]):  # noqa: C419
        return np.array(label)
    return label


def _of_each(logits: ExpressionArray, label: Any) -> Any:
    """Labels of an array's entries as integers; what is a distribution is as it is.

    A number for each entry, whole but no integer, may be a distribution or labels: it is refused, as is a row for each.
    """
    label = _listed(label)
    try:
        found = np.asarray(label) if isinstance(label, list | tuple | np.ndarray) else None
    except ValueError:  # no rectangle, which is said elsewhere
        found = None
    if found is None or is_integers(found) or not found.ndim or found.dtype.kind not in "fiub":
        return label
    if len(found) != len(logits) or found.ndim > 2 or (found.ndim == 1 and (np.floor(found) != found).any()):
        return label
    if found.ndim == 2:
        raise EdBatchError(
            f"cross_entropy: label: {shown(label)}: expected eb.array(x) of an array x with a distribution for each of "
            f"{len(logits)} entries"
        )
    raise EdBatchError(
        f"cross_entropy: label: {shown(label)} may be a label for each of {len(logits)} entries, or one distribution "
        "for all; expected integers, np.array(labels), or eb.input(distribution)"
    )


def cross_entropy(logits: Any, label: Any, label_smoothing: float = 0.0) -> Expression:
    """-log softmax(logits)[label], without overflow; scores in, not probabilities.

    Args:
        logits: [classes].
        label: the right class (an integer from 0 on, no part of the type), or a distribution [classes]:
            -Σ label · log softmax. Whether that adds up to 1 is not checked, as in PyTorch: of other weights it is the
            weighted sum. Of an array of n expressions: an array or a list of n integers, one for each; a distribution
            [classes] for all; or distributions, `eb.array(x)`.
        label_smoothing: in [0, 1]; this part of the label is spread evenly over all classes, as in PyTorch.

    Raises:
        EdBatchError: the label is out of range (a negative one is) or no integer (a bool is none), a distribution given
            as numbers is none, or `logits` is no vector; n whole numbers that are no integers are given for n
            expressions, which may be labels or a distribution.

    Example: eb.cross_entropy(eb.input([0.0, 0.0]), 1) -> 0.6931...
    """
    if label.__class__ is int and label_smoothing.__class__ is float and not label_smoothing:
        return _cross_entropy_call(logits, label)
    if isinstance(logits, ExpressionArray) and not is_integers(label):
        label = _of_each(logits, label)
    smoothing = checked_number("cross_entropy: label_smoothing", label_smoothing)
    expect(0 <= smoothing <= 1, f"cross_entropy: expected label_smoothing in [0, 1], got {label_smoothing}")
    soft = isinstance(label, Operand | list | tuple) or (isinstance(label, np.ndarray) and label.ndim > 0)
    soft = soft and not (isinstance(logits, ExpressionArray) and is_integers(label))  # one for each entry
    if not soft and not smoothing:
        return _cross_entropy_call(logits, label)
    x = to_expression("cross_entropy", logits)
    if not soft:
        hard = multiply(number(x.graph, 1 - smoothing), _cross_entropy_call(x, label))
        return add(hard, multiply(number(x.graph, -smoothing), mean(log_softmax(x), 0)))
    if not isinstance(label, Operand):
        label = _checked_target("cross_entropy: label", label)
    target = to_operand("cross_entropy: label", x.graph, label)
    if x.ndim != 1 or target.shape != x.shape:
        what = "a vector of scores, and one label or a distribution of as many entries"
        raise EdBatchError(f"cross_entropy({x.spec!r}, {target.spec!r}): expected {what}")
    scores = log_softmax(x)
    hard = -dot(target, scores)
    return hard if not smoothing else (1 - smoothing) * hard - smoothing * mean(scores, 0)


def hinge(scores: Any, label: int, margin: float = 1.0) -> Expression:
    """Σ over the other classes of max(0, margin + score - score of the label).

    Raises:
        EdBatchError: the label is out of range (a negative one is), or `scores` is no vector.

    Example: eb.hinge(eb.input([2.0, 1.5, 0.0]), 0) -> 0.5
    """
    x = to_expression("hinge", scores)
    if len(x.spec.shape) != 1:
        raise EdBatchError(f"hinge({x.spec!r}): expected a vector")
    if label.__class__ is not int or not 0 <= label < x.spec.shape[0]:
        x, label = each(x, _listed(label))
        label = checked_label(label, x.spec.shape[0], f"hinge({x.spec!r}, {shown(label)})")
    return _hinge_call(x, margin, label)


def _binary_entropy_gradient(g: Any, out: Any, p: Any, target: Any) -> tuple[Expression, Expression]:
    # Where p is 0 or 1, logarithms are cut off as in the loss, and the slope is large but finite (as PyTorch's).
    odds = maximum2(log(p), -100) - maximum2(log(1 - p), -100)
    return g * (p - target) / maximum2(p * (1 - p), 1e-12), -g * odds


BINARY_ENTROPY = elementwise_op(
    "binary_entropy",
    "-(y * maximum(log(x), -100) + (1 - y) * maximum(log1p(-x), -100))",
    _binary_entropy_gradient,
    shapes=[((4,), (4,)), ((), ()), ((2, 3), (2, 3))],
    low=0.05,
    high=0.95,
)
binary_entropy_of = binary(BINARY_ENTROPY)
_binary_cross_entropy_call = binary(
    composite(
        "binary_cross_entropy",
        _same_shapes,
        lambda p, target: sum(binary_entropy_of(p, target)),
        _pairs(low=0.05, high=0.95),
    )
)


def _checked_target(place: str, target: Any, most: float = np.inf) -> np.ndarray:
    """Probabilities that are given as numbers, as an array, checked; of an expression they are not known yet."""
    found = from_dlpack(target, place)
    if found.size <= FEW and all([0 <= entry <= most for entry in found.ravel().tolist()]):  # noqa: C419
        return found
    wrong = found[~((found >= 0) & (found <= most))]
    if wrong.size:
        raise EdBatchError(f"{place}: expected probabilities, got {wrong.flat[0]}")
    return found


def binary_cross_entropy(p: Any, target: Any) -> Expression:
    """-Σ target · log p + (1 - target) · log(1 - p); logarithms are cut off at -100.

    Args:
        p: probabilities, any shape (of scores: `sigmoid(scores)`).
        target: same shape, entries in [0, 1].

    Example: eb.binary_cross_entropy(eb.scalar(0.5), eb.scalar(1)) -> 0.6931...
    """
    if isinstance(target, int | float | np.number | np.ndarray):
        target = _checked_target("binary_cross_entropy: target", target, 1.0)
    return _binary_cross_entropy_call(p, target)


squared_distance = row_of_two(
    composite("squared_distance", _same_shapes, lambda a, b: sum(square(a - b)), _pairs()),
    "Σ (a - b)² over all entries of two operands of one shape",
    "eb.squared_distance(eb.input([1.0, 2.0]), eb.input([3.0, 4.0])) -> 8.0",
)
l1_distance = row_of_two(
    composite("l1_distance", _same_shapes, lambda a, b: sum(abs(a - b)), _pairs()),
    "Σ |a - b| over all entries of two operands of one shape",
    "eb.l1_distance(eb.input([1.0, 2.0]), eb.input([3.0, 4.0])) -> 4.0",
)


def _huber(a: Any, b: Any, delta: float) -> Expression:
    size = abs(a - b)
    small = minimum2(size, delta)
    return sum(small * (size - 0.5 * small))


@recorded(composite("huber", _same_shapes, _huber, _pairs({"delta": 0.7})), 2)
def huber(a: Any, b: Any, delta: float = 1.0) -> Attributes:
    """Σ of ½d² where |d| <= delta and delta (|d| - ½ delta) elsewhere, d = a - b.

    Example: eb.huber(eb.scalar(3), eb.scalar(0)) -> 2.5
    """
    found = checked_number("huber: delta", delta)
    expect(found > 0, f"huber: expected delta > 0, got {found}")
    return {"delta": found}
