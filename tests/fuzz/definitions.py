"""Every public op from its mathematical definition: value and derivative of one sample, in float64 NumPy.

Nothing here comes from the package. Where a function has no derivative (a kink, a tie), the convention is the one that
the package documents or PyTorch has.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.fuzz import window_definitions
from tests.fuzz.rounding import rounded
from tests.fuzz.window_definitions import avg_pool, convolution, max_pool
from tests.oracle import dropout as dropout_by_integers

erf = np.vectorize(math.erf, otypes=[np.float64])
erfc = np.vectorize(math.erfc, otypes=[np.float64])
NORMAL = 1 / math.sqrt(2 * math.pi)


@dataclass(frozen=True)
class Definition:
    """One op.

    Args:
        value: (*operands, **attributes) -> result.
        pull: (g, result, *operands, **attributes) -> per operand what the gradient g of the result gives it, of a
            shape that broadcasts to or from the operand's; None: nothing.
        exact: whether floating-point numbers go in and out without being rounded.
        view: whether the result is another way to look at its operand.
    """

    value: Callable
    pull: Callable
    exact: bool = False
    view: bool = False


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def unary(value, slope, exact=False):
    """Of a function and its slope: (operand, result, **attributes) -> slope."""
    return Definition(value, lambda g, y, x, **attributes: (g * slope(x, y, **attributes),), exact)


def axes_of(x, axis):
    if axis is None:
        return tuple(range(x.ndim))
    return tuple(range(x.ndim)[a] for a in ((axis,) if isinstance(axis, int) else axis))


def reduction(value, slope, exact=False):
    """Of a function of (x, axes, keepdims) and its slope (x, result with all axes, axes, number of entries)."""

    def pull(g, y, x, axis=None, keepdims=False):
        axes = axes_of(x, axis)
        if not keepdims:
            g, y = np.expand_dims(g, axes), np.expand_dims(y, axes)
        return (g * slope(x, y, axes, math.prod(x.shape[a] for a in axes)),)

    return Definition(lambda x, axis=None, keepdims=False: value(x, axes_of(x, axis), keepdims), pull, exact)


def of_list(value, share, exact=False):
    """A reduction over a list; `share`: (all operands stacked, result) -> the part of g that each gets."""
    return Definition(
        lambda *xs: value(np.stack(xs)),
        lambda g, y, *xs: tuple(g * part for part in share(np.stack(xs), y)),
        exact,
    )


def weighted_sum(*both):
    half = len(both) // 2
    return sum(weight * value for weight, value in zip(both[:half], both[half:], strict=True))


def weighted_sum_pull(g, y, *both):
    half = len(both) // 2
    return *(np.sum(g * value) for value in both[half:]), *(g * weight for weight in both[:half])


def attended(query, both, scale, heads):
    """The parts of heads: of the query, of keys and of values; and the weights of these."""
    half = len(both) // 2
    keys, values = (np.reshape(xs, (half, heads, -1)) for xs in (both[:half], both[half:]))
    parts = query.reshape(heads, -1)
    weights = softmax(rounded(scale * rounded((parts * keys).sum(-1))), 0)
    return parts, keys, values, rounded(weights)[..., None]


def attention(query, *both, scale, heads):
    _, _, values, weights = attended(query, both, scale, heads)
    return (weights * values).sum(0).ravel()


def attention_pull(g, y, query, *both, scale, heads):
    parts, keys, values, weights = attended(query, both, scale, heads)
    g = g.reshape(heads, -1)
    of_weights = rounded((g * values).sum(-1, keepdims=True))
    of_scores = rounded(scale * weights * (of_weights - rounded((weights * of_weights).sum(0))))
    of_query = (of_scores * keys).sum(0).ravel()
    return of_query, *(of_scores * parts).reshape(len(keys), -1), *(weights * g).reshape(len(keys), -1)


def ties(x, y, axis):
    """Divided evenly among the entries that are equal to the result."""
    return (x == y) / (x == y).sum(axis, keepdims=True)


def larger(a, b):
    """1 where a is larger, 0 where b is, a half where they are equal."""
    return 0.5 * (1.0 + (a > b) - (b > a))


def matmul_pull(g, y, a, b):
    if a.ndim == b.ndim == 1:
        return g * b, g * a
    left, right = np.atleast_2d(a), b.reshape(len(b), -1)
    whole = g.reshape(left.shape[0], right.shape[1])
    return (whole @ right.T).reshape(a.shape), (left.T @ whole).reshape(b.shape)


def comparison(value):
    """0 or 1; no gradient flows through it."""
    return Definition(lambda a, b: value(a, b) * 1.0, lambda g, y, a, b: (None, None), exact=True)


def layer_norm(x, gain, bias, epsilon):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon) * gain + bias


def layer_norm_pull(g, y, x, gain, bias, epsilon):
    """Through the Jacobian of each row, written out; its two parts may cancel."""
    rows, gains = x.reshape(-1, x.shape[-1]), (g * gain).reshape(-1, x.shape[-1])
    n, found = x.shape[-1], []
    for row, above in zip(rows, gains, strict=True):
        c = row - row.mean()
        deviation = np.sqrt((c * c).mean() + epsilon)
        jacobian = rounded((np.eye(n) - 1 / n) / deviation) - rounded(np.outer(c, c) / (n * deviation**3))
        found.append(above @ jacobian)
    return np.array(found).reshape(x.shape), g * layer_norm(x, 1.0, 0.0, epsilon), g


def place(x, shape, key):
    out = np.zeros(shape)
    out[key] = x
    return out


def concatenate_pull(g, y, *xs, axis=0):
    return tuple(np.split(g, np.cumsum([x.shape[axis] for x in xs])[:-1], axis))


def stack_pull(g, y, *xs, axis=0):
    return tuple(np.moveaxis(g, axis, 0))


def hinge_pull(g, y, x, label, margin):
    above = (x - x[label] + margin > 0) * 1.0
    above[label] = 0
    above[label] = -above.sum()
    return (g * above,)


def mask(x, rate, seed):
    return dropout_by_integers(np.ones(x.shape), seed, rate)


def power_pull(g, y, a, b):
    with np.errstate(divide="ignore", invalid="ignore"):
        return g * np.where(b == 0, 0.0, b * a ** (b - 1)), g * y * np.log(np.where(a == 0, 1.0, a))


def difference(slope, value):
    """A distance: the sum over all entries of a function of a - b."""

    def pull(g, y, a, b, **attributes):
        of_a = g * slope(a - b, **attributes)
        return of_a, -of_a

    return Definition(lambda a, b, **attributes: np.sum(value(a - b, **attributes)), pull)


def entries(x, key):
    """A view, of one entry too."""
    key = key if isinstance(key, tuple) else (key,)
    return x[key if ... in key else (*key, ...)]


def back(x, axes):
    return None if axes is None else np.argsort([axis % x.ndim for axis in axes])


def at(index, axis):
    """Where in an array the entries are that an index says along an axis."""
    grid = list(np.indices(index.shape))
    grid[axis] = np.floor(index).astype(int)
    return tuple(grid)


def added_at(x, index, axis, values):
    out = np.array(x)
    np.add.at(out, at(index, axis), values)
    return out


def put_at(x, index, values, axis):
    """The last of several values for one entry stays."""
    out = np.array(x)
    for to, value in zip(zip(*(part.ravel() for part in at(index, axis)), strict=True), values.ravel(), strict=True):
        out[to] = value
    return out


def put_pull(g, y, x, index, values, axis):
    numbers = np.arange(index.size).reshape(index.shape)
    stays = put_at(np.full(x.shape, -1), index, numbers, axis)
    return np.where(stays < 0, g, 0), None, g[at(index, axis)] * (stays[at(index, axis)] == numbers)


def numbers_of(value):
    """Of entries; no gradient flows through them."""
    return Definition(lambda x, **attributes: value(x, **attributes) * 1.0, lambda g, y, x, **_: (None,), exact=True)


def largest(x, k, axis, in_order=False):
    found = np.argsort(-np.where(np.isnan(x), np.inf, x), axis=axis, kind="stable").take(range(k), axis)
    return np.sort(found, axis) if in_order else found


def of_largest(in_order):
    return Definition(
        lambda x, k, axis=-1: np.take_along_axis(x, largest(x, k, axis, in_order), axis),
        lambda g, y, x, k, axis=-1: (added_at(np.zeros(x.shape), largest(x, k, axis, in_order), axis, g),),
        exact=True,
    )


def inside(g, x, pad_width):
    """Without what was put around."""
    pairs = np.broadcast_to(pad_width, (x.ndim, 2))
    return g[tuple(slice(before, before + size) for (before, _), size in zip(pairs, x.shape, strict=True))]


# fmt: off
DEFINITIONS: dict[str, Definition] = {
    "neg": unary(lambda x: -x, lambda x, y: -1.0, exact=True),
    "abs": unary(np.abs, lambda x, y: np.sign(x), exact=True),
    "square": unary(lambda x: x * x, lambda x, y: 2 * x),
    "sqrt": unary(np.sqrt, lambda x, y: 0.5 / np.sqrt(x)),
    "exp": unary(np.exp, lambda x, y: np.exp(x)),
    "log": unary(np.log, lambda x, y: 1 / x),
    "tanh": unary(np.tanh, lambda x, y: 1 - y * y),
    "sigmoid": unary(sigmoid, lambda x, y: y * (1 - y)),
    "relu": unary(lambda x: np.maximum(x, 0.0), lambda x, y: x > 0, exact=True),
    "gelu": unary(lambda x: x * 0.5 * (1 + rounded(erf(x / math.sqrt(2)))),
                  lambda x, y: 0.5 * (1 + rounded(erf(x / math.sqrt(2)))) + x * np.exp(-x * x / 2) * NORMAL),
    "silu": unary(lambda x: x * sigmoid(x), lambda x, y: sigmoid(x) + x * sigmoid(x) * sigmoid(-x)),
    "softplus": unary(lambda x: np.log1p(np.exp(x)), lambda x, y: sigmoid(x)),
    "softsign": unary(lambda x: x / (1 + np.abs(x)), lambda x, y: (1 + np.abs(x)) ** -2.0),
    "log_sigmoid": unary(lambda x: -np.log1p(np.exp(-x)), lambda x, y: sigmoid(-x)),
    "erf": unary(erf, lambda x, y: 2 / math.sqrt(math.pi) * np.exp(-x * x)),
    "erfc": unary(erfc, lambda x, y: -2 / math.sqrt(math.pi) * np.exp(-x * x)),
    "sin": unary(np.sin, lambda x, y: np.cos(x)),
    "cos": unary(np.cos, lambda x, y: -np.sin(x)),
    "leaky_relu": unary(lambda x, slope=0.01: np.where(x > 0, x, slope * x),
                        lambda x, y, slope=0.01: np.where(x > 0, 1.0, slope)),
    "elu": unary(lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))),
                 lambda x, y, alpha=1.0: np.where(x > 0, 1.0, alpha * np.exp(np.minimum(x, 0)))),
    "clip": unary(lambda x, low, high: np.clip(x, low, high),
                  lambda x, y, low, high: (x >= low) & (x <= high), exact=True),
    "scale_gradient": unary(lambda x, scale: x, lambda x, y, scale: scale, exact=True),
    "stop_gradient": Definition(lambda x: x.view(), lambda g, y, x: (None,), exact=True, view=True),
    "add": Definition(lambda a, b: a + b, lambda g, y, a, b: (g, g)),
    "subtract": Definition(lambda a, b: a - b, lambda g, y, a, b: (g, -g)),
    "multiply": Definition(lambda a, b: a * b, lambda g, y, a, b: (g * b, g * a)),
    "divide": Definition(lambda a, b: a / b, lambda g, y, a, b: (g / b, -g * a / b**2)),
    "power": Definition(lambda a, b: a**b, power_pull),
    "maximum": Definition(np.maximum, lambda g, y, a, b: (g * larger(a, b), g * larger(b, a)), exact=True),
    "minimum": Definition(np.minimum, lambda g, y, a, b: (g * larger(b, a), g * larger(a, b)), exact=True),
    "greater": comparison(np.greater), "greater_equal": comparison(np.greater_equal),
    "less": comparison(np.less), "less_equal": comparison(np.less_equal),
    "equal": comparison(np.equal), "not_equal": comparison(np.not_equal),
    "where": Definition(lambda c, a, b: np.where(c, a, b),
                        lambda g, y, c, a, b: (None, np.where(c, g, 0.0), np.where(c, 0.0, g)), exact=True),
    "argmax": numbers_of(lambda x, axis=None, keepdims=False: x.argmax(axis, keepdims=keepdims)),
    "argmin": numbers_of(lambda x, axis=None, keepdims=False: x.argmin(axis, keepdims=keepdims)),
    "one_hot": numbers_of(lambda index, size: index[..., None] == np.arange(size)),
    "gather": Definition(lambda x, index, axis: x[at(index, axis)],
                         lambda g, y, x, index, axis: (added_at(np.zeros(x.shape), index, axis, g), None), exact=True),
    "scatter": Definition(put_at, put_pull, exact=True),
    "scatter_add": Definition(lambda x, index, values, axis: added_at(x, index, axis, values),
                              lambda g, y, x, index, values, axis: (g, None, g[at(index, axis)])),
    "top_k_numbers": numbers_of(lambda x, k, axis=-1: largest(x, k, axis)),
    "top_k": of_largest(in_order=False), "k_max_pool": of_largest(in_order=True),
    "cumsum": Definition(np.cumsum, lambda g, y, x, axis: (np.flip(np.cumsum(np.flip(g, axis), axis), axis),)),
    "pad": Definition(
        lambda x, pad_width, constant_values=0.0: np.pad(x, pad_width, constant_values=constant_values),
        lambda g, y, x, pad_width, constant_values=0.0: (inside(g, x, pad_width),), exact=True),
    "max_pool1d": Definition(*max_pool(1), exact=True), "max_pool2d": Definition(*max_pool(2), exact=True),
    "avg_pool1d": Definition(*avg_pool(1)), "avg_pool2d": Definition(*avg_pool(2)),
    "unfold": Definition(*window_definitions.unfold(), exact=True),
    "conv1d": Definition(*convolution(1)), "conv2d": Definition(*convolution(2)),
    "matmul": Definition(lambda a, b: a @ b, matmul_pull),
    "affine": Definition(lambda a, x, b: a @ x + b, lambda g, y, a, x, b: (*matmul_pull(g, y, a, x), g)),
    "dot": Definition(lambda a, b: a @ b, matmul_pull),
    "sum": reduction(lambda x, a, k: x.sum(a, keepdims=k), lambda x, y, a, n: np.ones(x.shape)),
    "mean": reduction(lambda x, a, k: x.mean(a, keepdims=k), lambda x, y, a, n: np.ones(x.shape) / n),
    "std": reduction(lambda x, a, k: x.std(a, keepdims=k),
                     lambda x, y, a, n: (x - x.mean(a, keepdims=True)) / np.where(y == 0, 1, y) / n),
    "max": reduction(lambda x, a, k: x.max(a, keepdims=k), lambda x, y, a, n: ties(x, y, a), exact=True),
    "min": reduction(lambda x, a, k: x.min(a, keepdims=k), lambda x, y, a, n: ties(x, y, a), exact=True),
    "logsumexp": reduction(lambda x, a, k: np.log(rounded(np.exp(x)).sum(a, keepdims=k)),
                           lambda x, y, a, n: np.exp(x - y)),
    "norm": reduction(lambda x, a, k: np.sqrt((x * x).sum(a, keepdims=k)),
                      lambda x, y, a, n: x / np.where(y == 0, 1, y)),
    "weighted_sum": Definition(weighted_sum, weighted_sum_pull),
    "attention": Definition(attention, attention_pull),
    "sum_list": of_list(lambda xs: xs.sum(0), lambda xs, y: np.ones(xs.shape)),
    "mean_list": of_list(lambda xs: xs.mean(0), lambda xs, y: np.ones(xs.shape) / len(xs)),
    "logsumexp_list": of_list(lambda xs: np.log(rounded(np.exp(xs)).sum(0)), lambda xs, y: np.exp(xs - y)),
    "maximum_list": of_list(lambda xs: xs.max(0), lambda xs, y: ties(xs, y, 0), exact=True),
    "minimum_list": of_list(lambda xs: xs.min(0), lambda xs, y: ties(xs, y, 0), exact=True),
    "softmax": Definition(lambda x, axis=-1: softmax(x, axis),
                          lambda g, y, x, axis=-1: (y * (g - (g * y).sum(axis, keepdims=True)),)),
    "log_softmax": Definition(lambda x, axis=-1: np.log(rounded(softmax(x, axis))),
                              lambda g, y, x, axis=-1: (g - np.exp(y) * g.sum(axis, keepdims=True),)),
    "layer_norm": Definition(lambda x, gain, bias, epsilon=1e-5: layer_norm(x, gain, bias, epsilon),
                             lambda g, y, x, gain, bias, epsilon=1e-5: layer_norm_pull(g, y, x, gain, bias, epsilon)),
    "dropout": Definition(lambda x, rate, seed: x * mask(x, rate, seed),
                          lambda g, y, x, rate, seed: (g * mask(x, rate, seed),)),
    "pick": Definition(lambda x, index: x[index].copy(),
                       lambda g, y, x, index: (place(g, x.shape, index),), exact=True),
    "cross_entropy": Definition(lambda x, label: -np.log(rounded(softmax(x, 0)))[label],
                                lambda g, y, x, label: (g * (rounded(softmax(x, 0)) - place(1, x.shape, label)),)),
    "hinge": Definition(lambda x, label, margin=1.0: np.maximum(0, np.delete(x, label) - x[label] + margin).sum(),
                        lambda g, y, x, label, margin=1.0: hinge_pull(g, y, x, label, margin)),
    "binary_cross_entropy": Definition(lambda p, t: -np.sum(t * np.log(p) + (1 - t) * np.log1p(-p)),
                                       lambda g, y, p, t: (g * (p - t) / (p - p * p), g * (np.log1p(-p) - np.log(p)))),
    "squared_distance": difference(lambda d: 2 * d, lambda d: d * d),
    "l1_distance": difference(np.sign, np.abs),
    "huber": difference(lambda d, delta=1.0: np.clip(d, -delta, delta),
                        lambda d, delta=1.0: np.where(abs(d) <= delta, d * d / 2, delta * (abs(d) - delta / 2))),
    "concatenate": Definition(lambda *xs, axis=0: np.concatenate(xs, axis), concatenate_pull, exact=True),
    "stack": Definition(lambda *xs, axis=0: np.stack(xs, axis), stack_pull, exact=True),
    "index": Definition(entries, lambda g, y, x, key: (place(g, x.shape, key),), exact=True, view=True),
    "reshape": Definition(lambda x, shape: x.reshape(shape),
                          lambda g, y, x, shape: (g.reshape(x.shape),), exact=True, view=True),
    "transpose": Definition(lambda x, axes=None: x.transpose(axes),
                            lambda g, y, x, axes=None: (g.transpose(back(x, axes)),),
                            exact=True, view=True),
    "flip": Definition(lambda x, axis=0: np.flip(x, axis), lambda g, y, x, axis=0: (np.flip(g, axis),), exact=True,
                       view=True),
}
# fmt: on
