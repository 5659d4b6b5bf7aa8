"""Softmax, layer normalisation and dropout."""

from __future__ import annotations

from typing import Any

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.graph.expression import Expression
from edbatch.graph.fast import attributed, documented
from edbatch.graph.op import Op, Sample, declare, expect
from edbatch.graph.ops.elementwise import exp, maximum2, sqrt, square
from edbatch.graph.ops.reduce import mean, std, sum
from edbatch.graph.ops.shape import checked_axis
from edbatch.graph.record import checked_index, checked_number, graph_of, record, to_expression
from edbatch.graph.spec import Shape


def _softmax(k: Any, out: Any, x: Any, axis: int) -> None:
    k.subtract(x, k.max(x, axis=axis + 1, keepdims=True), out=out)
    k.exp(out, out=out)
    out /= k.sum(out, axis=axis + 1, keepdims=True)


def _log_softmax(k: Any, out: Any, x: Any, axis: int) -> None:
    k.subtract(x, k.max(x, axis=axis + 1, keepdims=True), out=out)
    out -= k.log(k.sum(k.exp(out), axis=axis + 1, keepdims=True))


def _softmax_gradient(g: Any, out: Any, x: Any, axis: int) -> Expression:
    return out * (g - sum(g * out, axis, keepdims=True))


def _log_softmax_gradient(g: Any, out: Any, x: Any, axis: int) -> Expression:
    return g - exp(out) * sum(g, axis, keepdims=True)


_SAMPLES = (Sample(((5,),), {"axis": 0}), Sample(((2, 3),), {"axis": 0}), Sample(((2, 3),), {"axis": 1}))
SOFTMAX = declare(Op("softmax", lambda shape, axis: shape, _softmax, gradient=_softmax_gradient, samples=_SAMPLES))
LOG_SOFTMAX = declare(
    Op("log_softmax", lambda shape, axis: shape, _log_softmax, gradient=_log_softmax_gradient, samples=_SAMPLES)
)


def _layer_norm_shape(x: Shape, gain: Shape, bias: Shape, epsilon: float) -> Shape:
    expect(len(x) > 0 and gain == bias == x[-1:], "expected gain and bias of the size of the last axis")
    return x


def _layer_norm(k: Any, out: Any, x: Any, gain: Any, bias: Any, epsilon: float) -> None:
    between = (slice(None), *(None,) * (out.ndim - 2))
    centred = x.astype(np.float64)  # where the square of no float32 is infinite
    centred -= k.mean(centred, axis=-1, keepdims=True)
    k.divide(centred, k.sqrt(k.mean(k.square(centred), axis=-1, keepdims=True) + epsilon), out=out)
    out *= gain[between]
    out += bias[between]


def _layer_norm_gradient(
    g: Any, out: Any, x: Any, gain: Any, bias: Any, epsilon: float
) -> tuple[Expression, Expression, Expression]:
    centred = x - mean(x, -1, keepdims=True)
    centred = centred - mean(centred, -1, keepdims=True)  # what was lost by rounding the mean of large entries
    spread = std(x, -1, keepdims=True)
    large = maximum2(spread, 1)  # whose square may be infinite
    scale = 1 / (large * sqrt(square(spread / large) + epsilon / square(large)))
    normal, scaled = centred * scale, g * gain
    below = scaled - mean(scaled, -1, keepdims=True) - normal * mean(scaled * normal, -1, keepdims=True)
    return scale * below, g * normal, g


LAYER_NORM = declare(
    Op(
        "layer_norm",
        _layer_norm_shape,
        _layer_norm,
        gradient=_layer_norm_gradient,
        samples=(
            Sample(((4,), (4,), (4,)), {"epsilon": 1e-5}),
            Sample(((2, 4), (4,), (4,)), {"epsilon": 1e-3}),
        ),
    )
)


def _dropout(k: Any, out: Any, x: Any, seed: Any, rate: float) -> None:
    # Drawn from the node's own seed and the entry's position, so that the mask does not depend on the batch.
    keep = k.uniform(seed, out.shape) >= rate
    k.multiply(x, keep / (1 - rate), out=out)


def _masked(x: Any, rate: float, seed: Any) -> Expression:
    return record(DROPOUT, (x,), (checked_index(seed, 2**31, "dropout's seed"),), rate=float(rate))


DROPOUT = declare(
    Op(
        "dropout",
        lambda shape, rate: shape,
        _dropout,
        payload=1,
        gradient=lambda g, out, x, seed, rate: _masked(g, rate, seed),
        samples=(Sample(((5,),), {"rate": 0.4}, payload=(1000,)), Sample(((2, 3),), {"rate": 0.0}, payload=(9,))),
    )
)


softmax = documented(
    attributed(SOFTMAX, lambda spec, axis: {"axis": checked_axis("softmax", spec, axis)}, default=-1),
    __name__,
    "softmax",
    """eˣ / Σ eˣ along an axis, without overflow.

    Args:
        x: expression with at least one axis.
        axis: of one sample's value; part of the type.

    Example:
        >>> import edbatch as eb
        >>> with eb.Graph():
        ...     y = eb.softmax(eb.input([1.0, 1.0]))
        >>> y.value()
        array([0.5, 0.5], dtype=float32)
    """,
    "axis",
)


log_softmax = documented(
    attributed(LOG_SOFTMAX, lambda spec, axis: {"axis": checked_axis("log_softmax", spec, axis)}, default=-1),
    __name__,
    "log_softmax",
    """x - log Σ eˣ along an axis, without overflow.

    Args:
        x: expression with at least one axis.
        axis: of one sample's value; part of the type.

    Example:
        >>> import edbatch as eb
        >>> with eb.Graph():
        ...     y = eb.log_softmax(eb.input([0.0, 0.0]))
        >>> y.value().round(4)
        array([-0.6931, -0.6931], dtype=float32)
    """,
    "axis",
)


def layer_norm(x: Any, gain: Any, bias: Any, epsilon: float = 1e-5) -> Expression:
    """(x - mean) / √(variance + epsilon) · gain + bias over the last axis.

    Args:
        x: [..., n].
        gain, bias: [n], expressions or parameters.
        epsilon: added to the variance.

    Example:
        >>> import edbatch as eb
        >>> with eb.Graph():
        ...     y = eb.layer_norm(eb.input([1.0, 3.0]), eb.ones(2), eb.zeros(2))
        >>> y.value().round(3)
        array([-1.,  1.], dtype=float32)
    """
    return record(LAYER_NORM, (x, gain, bias), epsilon=checked_number("layer_norm: epsilon", epsilon))


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

    Example:
        >>> import edbatch as eb
        >>> with eb.Graph():
        ...     x = eb.ones(1000)
        ...     y = eb.mean(eb.dropout(x, 0.5))
        >>> bool(abs(y.value() - 1) < 0.1)
        True
        >>> with eb.options(training=False), eb.Graph():
        ...     y = eb.dropout(eb.input([1.0, 2.0]), 0.5)
        >>> y.value()
        array([1., 2.], dtype=float32)
    """
    if x.__class__ is Expression and rate.__class__ is float and rate == 0:  # of layers that drop nothing
        return x
    rate = checked_number("dropout: rate", rate)
    if not 0 <= rate < 1:
        raise EdBatchError(f"dropout: expected a rate in [0, 1), got {rate}")
    graph = graph_of("dropout", (x,))
    if not graph.options.training or rate == 0:
        return to_expression("dropout", x)
    return _masked(x, rate, graph.draw(1)[0] if seed is None else seed)
