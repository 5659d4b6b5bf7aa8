"""Softmax, layer normalisation and dropout."""

from __future__ import annotations

from typing import Any

from edbatch.base.numbers import checked_real
from edbatch.errors import EdBatchError
from edbatch.graph.array_graph import each
from edbatch.graph.cell.trace import Payload
from edbatch.graph.draws import checked_seed
from edbatch.graph.expression import Expression
from edbatch.graph.expression_list import listed
from edbatch.graph.integers import Integers, is_integers
from edbatch.graph.op import Op, Sample, composite, declare, expect
from edbatch.graph.op_callers import Attributes, binary, recorded
from edbatch.graph.ops.elementwise import abs, divide, exp, log, maximum2, sqrt, square
from edbatch.graph.ops.reduce import centred, is_list, max, mean, sum
from edbatch.graph.ops.shape import checked_axis, stop_gradient
from edbatch.graph.record import checked_index, checked_number, graph_of, to_expression
from edbatch.graph.spec import Shape


def _below_largest(x: Any, axis: int) -> Expression:
    return x - stop_gradient(max(x, axis, keepdims=True))


def _softmax(x: Any, axis: int) -> Expression:
    power = exp(_below_largest(x, axis))
    return power * (1 / sum(power, axis, keepdims=True))


def _log_softmax(x: Any, axis: int) -> Expression:
    below = _below_largest(x, axis)
    return below - log(sum(exp(below), axis, keepdims=True))


_exp_difference = binary(
    composite("exp_difference", lambda x, y: x, lambda x, y: exp(x - y), (Sample(((3,), (3,))), Sample(((), ()))))
)


def _softmax_of_list(x: Any, axis: Any) -> list[Expression] | None:
    """Entry by entry across a list; None of one operand."""
    if isinstance(x, Expression) or not is_list("softmax", x, None if axis.__class__ is int and axis == -1 else axis):
        return None
    xs = [*listed("softmax", x)]
    top = stop_gradient(max(xs))
    powers = [_exp_difference(one, top) for one in xs]
    total = sum(powers)
    return [divide(power, total) for power in powers]


_SAMPLES = (Sample(((5,),), {"axis": 0}), Sample(((2, 3),), {"axis": 0}), Sample(((2, 3),), {"axis": 1}))


def _layer_norm_shape(x: Shape, gain: Shape, bias: Shape, epsilon: float) -> Shape:
    expect(len(x) > 0 and gain == bias == x[-1:], "expected gain and bias of the size of the last axis")
    return x


def _layer_norm(x: Any, gain: Any, bias: Any, epsilon: float) -> Expression:
    from_mean = centred(x, -1)
    far = stop_gradient(maximum2(max(abs(from_mean), -1, keepdims=True), 1))  # whose square may be infinite
    variance = mean(square(from_mean / far), -1, keepdims=True)
    return from_mean * (1 / (far * sqrt(variance + epsilon / square(far)))) * gain + bias


_SEEDS = 2**31


def _masked(x: Any, rate: float, seed: Any) -> Expression:
    return _dropout(x, rate, checked_index(seed, _SEEDS, "dropout's seed"))


DROPOUT = declare(
    Op(
        "dropout",
        lambda shape, rate: shape,
        payload=1,
        scalar="x * ((1 if uniform(integer, position) >= rate else 0) / (1 - rate))",
        gradient=lambda g, out, x, seed, rate: _masked(g, rate, seed),
        samples=(Sample(((5,),), {"rate": 0.4}, payload=(1000,)), Sample(((2, 3),), {"rate": 0.0}, payload=(9,))),
    )
)
_dropout = recorded(DROPOUT)(lambda x, rate, seed: {"rate": float(rate)})


@recorded(composite("softmax", lambda shape, axis: shape, _softmax, _SAMPLES), otherwise=_softmax_of_list)
def softmax(x: Any, axis: int = -1) -> Any:
    """eˣ / Σ eˣ along an axis, or across a list entry by entry, without overflow.

    Args:
        x: expression with at least one axis; or a list of expressions of one shape, which gives a list of as many.
            Lists of any length batch with one another.
        axis: of one sample's value; part of the type. A list takes none.

    Example: eb.softmax(eb.input([1.0, 1.0])) -> [0.5 0.5]
    """
    return {"axis": checked_axis("softmax", x.spec, axis)}


@recorded(composite("log_softmax", lambda shape, axis: shape, _log_softmax, _SAMPLES))
def log_softmax(x: Any, axis: int = -1) -> Attributes:
    """x - log Σ eˣ along an axis of one sample's value, without overflow.

    Example: eb.log_softmax(eb.input([0.0, 0.0])) -> [-0.6931... -0.6931...]
    """
    return {"axis": checked_axis("log_softmax", x.spec, axis)}


@recorded(
    composite(
        "layer_norm",
        _layer_norm_shape,
        _layer_norm,
        (Sample(((4,), (4,), (4,)), {"epsilon": 1e-5}), Sample(((2, 4), (4,), (4,)), {"epsilon": 1e-3})),
    ),
    3,
)
def layer_norm(x: Any, gain: Any, bias: Any, epsilon: float = 1e-5) -> Attributes:
    """(x - mean) / √(variance + epsilon) · gain + bias over the last axis.

    Args:
        x: [..., n].
        gain, bias: [n], expressions or parameters.
        epsilon: added to the variance; from 0 on.

    Raises:
        EdBatchError: shapes do not fit, or `epsilon` is negative or no number.

    Example: eb.layer_norm(eb.input([1.0, 3.0]), eb.ones(2), eb.zeros(2), epsilon=0) -> [-1. 1.]
    """
    return {"epsilon": checked_real("layer_norm", "epsilon", checked_number("layer_norm: epsilon", epsilon))}


def _checked_seed(seed: Any) -> Any:
    """Unlike an index, none counts from the end. An integer argument of a cell is checked when the cell is called."""
    if isinstance(seed, Payload | Integers):
        seed.used_as_label(_SEEDS, "dropout: seed")  # of which none counts from the end, either
        return seed
    return checked_seed("dropout: seed", seed, 31)


def dropout(x: Any, rate: float, seed: int | None = None) -> Expression:
    """Each entry set to zero with probability `rate`, the others divided by 1 - rate.

    Every node draws a mask of its own, in every graph another; what `edbatch.seed` says fixes them all. They do not
    depend on policy, batching, cells or device. With `eb.options(training=False)` the result is `x` itself.

    Args:
        x: expression of any shape.
        rate: in [0, 1); part of the type. With 0 the result is `x` itself, too.
        seed: of this node's mask, below 2**31, for a mask that comes again: two nodes of one seed and shape have equal
            masks, in any graph. By default it is drawn.

    Raises:
        EdBatchError: rate or seed is out of range.

    Example: eb.dropout(eb.ones(4), 0.5, seed=3) -> [2. 2. 2. 0.]
    """
    if x.__class__ is Expression and rate.__class__ is float and rate == 0:  # of layers that drop nothing
        return x
    rate = checked_number("dropout: rate", rate)
    if not 0 <= rate < 1:
        raise EdBatchError(f"dropout: expected a rate in [0, 1), got {rate}")
    graph = graph_of("dropout", (x,))
    if not graph.options.training or rate == 0:
        return to_expression("dropout", x)
    if is_integers(seed) or isinstance(seed, Payload):
        x, seed = each(to_expression("dropout", x), seed)
    if seed is not None:
        return _masked(x, rate, _checked_seed(seed))
    (drawn,) = graph.take_draws(1)
    return _dropout(x, rate, drawn.used_in(_SEEDS, "dropout: seed") if isinstance(drawn, Payload) else drawn)
