"""Every op of the table once more, for one sample, in float64 NumPy: nothing here comes from the package."""

import math

import numpy as np

from tests.windows import avg_pool, convolve, correlate, max_pool, unfold

erf = np.vectorize(math.erf, otypes=[np.float64])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def logsumexp(x, axes=None, keepdims=False):
    return np.log(np.sum(np.exp(x), axis=axes, keepdims=keepdims))


def over(reduce):
    return lambda x, axes, keepdims: reduce(x, axis=axes, keepdims=keepdims)


def index(x, index):
    return x[tuple(part if isinstance(part, int) else slice(*part) for part in index)]


def layer_norm(x, gain, bias, epsilon):
    rows = [(row - row.mean()) / np.sqrt(row.var() + epsilon) for row in x.reshape(-1, x.shape[-1])]
    return np.stack(rows).reshape(x.shape) * gain + bias


def softmax(x, axis):
    e = np.exp(x)
    return e / e.sum(axis=axis, keepdims=True)


def dropout(x, seed, rate):
    """SplitMix64 with Python's integers, one entry at a time."""
    mask = 2**64 - 1

    def mix(z):
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return z ^ (z >> 31)

    golden = 0x9E3779B97F4A7C15
    base = mix((seed * golden) & mask)
    drawn = [(mix((base + (i + 1) * golden) & mask) >> 11) * 2.0**-53 for i in range(x.size)]
    return x * (np.array(drawn).reshape(x.shape) >= rate) / (1 - rate)


def weighted_sum(*both):
    half = len(both) // 2
    return sum(weight * value for weight, value in zip(both[:half], both[half:], strict=True))


def attention(query, *both, heads, scale):
    half = len(both) // 2
    keys, values = (np.reshape(xs, (half, heads, -1)) for xs in (both[:half], both[half:]))
    weights = softmax(scale * np.einsum("hd,ehd->eh", query.reshape(heads, -1), keys), 0)
    return np.einsum("eh,ehc->hc", weights, values).ravel()


def huber(a, b, delta):
    return sum(0.5 * d * d if abs(d) <= delta else delta * (abs(d) - 0.5 * delta) for d in np.ravel(a - b))


def embed(x, shape_to, index, fill):
    out = np.full(shape_to, fill)
    out[tuple(part if isinstance(part, int) else slice(*part) for part in index)] = x
    return out


def first(x, axes, keepdims):
    """The number of the first entry that is not 0, or -1."""
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    rows = x.transpose(*kept, *axes).reshape(*(x.shape[axis] for axis in kept), -1)
    found = np.array([next((i for i, y in enumerate(row) if y != 0), -1) for row in rows.reshape(-1, rows.shape[-1])])
    return found.reshape([1 if a in axes else n for a, n in enumerate(x.shape)] if keepdims else rows.shape[:-1])


def argument(reduce):
    """Among all entries along some axes."""

    def number(x, axes, keepdims):
        return first(x == reduce(x, axis=axes, keepdims=True), axes, keepdims) * 1.0

    return number


def gather(x, index, axis):
    out = np.empty(index.shape)
    for at in np.ndindex(*index.shape):
        out[at] = x[(*at[:axis], int(index[at]), *at[axis + 1 :])]
    return out


def scatter(x, index, values, axis, add=False):
    out = np.array(x)
    for at in np.ndindex(*index.shape):
        to = (*at[:axis], int(index[at]), *at[axis + 1 :])
        out[to] = values[at] + (out[to] if add else 0)
    return out


def last_at(index, shape_to, axis):
    numbers = np.arange(1.0, index.shape[axis] + 1).reshape(-1, *[1] * (index.ndim - axis - 1))
    return scatter(np.zeros(shape_to), index, np.broadcast_to(numbers, index.shape), axis)


def top_k(x, k, axis):
    return np.argsort(-x, axis=axis, kind="stable").take(range(k), axis) * 1.0


ORACLE = {
    "neg": lambda x: -x,
    "abs": abs,
    "square": lambda x: x * x,
    "sqrt": lambda x: x**0.5,
    "exp": lambda x: math.e**x,
    "log": np.log,
    "tanh": lambda x: (np.exp(2 * x) - 1) / (np.exp(2 * x) + 1),
    "sigmoid": sigmoid,
    "relu": lambda x: np.where(x > 0, x, 0),
    "gelu": lambda x: x * (1 + erf(x / math.sqrt(2))) / 2,
    "silu": lambda x: x * sigmoid(x),
    "softplus": lambda x: np.log(1 + np.exp(x)),
    "softsign": lambda x: x / (1 + abs(x)),
    "log_sigmoid": lambda x: np.log(sigmoid(x)),
    "erf": erf,
    "erfc": np.vectorize(math.erfc, otypes=[np.float64]),
    "sin": np.sin,
    "cos": np.cos,
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "greater": lambda a, b: np.where(a > b, 1.0, 0.0),
    "greater_equal": lambda a, b: np.where(a >= b, 1.0, 0.0),
    "less": lambda a, b: np.where(a < b, 1.0, 0.0),
    "less_equal": lambda a, b: np.where(a <= b, 1.0, 0.0),
    "equal": lambda a, b: np.where(a == b, 1.0, 0.0),
    "not_equal": lambda a, b: np.where(a == b, 0.0, 1.0),
    "alike": lambda a, b: np.where((a == b) | (np.isnan(a) & np.isnan(b)), 1.0, 0.0),
    "where": lambda c, a, b: np.where(c == 0, b, a),
    "scale_gradient": lambda x, scale: x,
    "power": lambda a, b: np.exp(b * np.log(a)),
    "minimum": lambda a, b: np.where(a < b, a, b),
    "maximum": lambda a, b: np.where(a > b, a, b),
    "leaky_relu": lambda x, slope: np.where(x > 0, x, slope * x),
    "elu": lambda x, alpha: np.where(x > 0, x, alpha * (np.exp(x) - 1)),
    "clip": lambda x, low, high: np.where(x < low, low, np.where(x > high, high, x)),
    "power_of": lambda x, exponent: x**exponent,
    "matmul": lambda a, b: np.tensordot(a, b, axes=(a.ndim - 1, 0)),
    "matmul_stack": lambda a, b: a @ b,
    "linear": lambda rows, weight: rows @ weight.T,
    "affine": lambda W, x, b: np.tensordot(W, x, axes=(-1, 0)) + b,
    "dot": lambda a, b: sum(a * b),
    "outer": lambda a, b: np.array([[x * y for y in b] for x in a]),
    "index": index,
    "embed": embed,
    "reshape": lambda x, shape_to: np.array(list(x.flat)).reshape(shape_to),
    "transpose": lambda x, axes: np.moveaxis(x, axes, range(len(axes))),
    "stop_gradient": lambda x: x,
    "concatenate": lambda *xs, axis: np.concatenate(xs, axis),
    "stack": lambda *xs, axis: np.stack(xs, axis),
    "sum": over(np.sum),
    "mean": over(np.mean),
    "std": over(np.std),
    "max": over(np.max),
    "min": over(np.min),
    "logsumexp": logsumexp,
    "norm": lambda x, axes, keepdims: np.sum(x * x, axis=axes, keepdims=keepdims) ** 0.5,
    "first": first,
    "argmax": argument(np.max),
    "argmin": argument(np.min),
    "one_hot": lambda index, size: (
        np.eye(size + 1)[np.clip(index.astype(int), -1, size)][..., :size] * (index >= 0)[..., None]
    ),
    "gather": gather,
    "scatter": scatter,
    "added_at": lambda index, values, shape_to, axis: scatter(np.zeros(shape_to), index, values, axis, add=True),
    "last_at": last_at,
    "scatter_add": lambda x, index, values, axis: scatter(x, index, values, axis, add=True),
    "top_k": top_k,
    "k_max_pool": lambda x, k, axis: gather(x, np.sort(top_k(x, k, axis), axis), axis),
    "cumsum": np.cumsum,
    "weighted_sum": weighted_sum,
    "attention": attention,
    "exp_difference": lambda a, b: np.exp(a - b),
    "unfold": unfold,
    "correlate": correlate,
    "conv1d": convolve,
    "conv2d": convolve,
    "max_pool1d": max_pool,
    "max_pool2d": max_pool,
    "avg_pool1d": avg_pool,
    "avg_pool2d": avg_pool,
    "first_max": over(np.max),
    "sum_list": lambda *xs: sum(xs),
    "mean_list": lambda *xs: sum(xs) / len(xs),
    "maximum_list": lambda *xs: np.max(xs, axis=0),
    "minimum_list": lambda *xs: np.min(xs, axis=0),
    "logsumexp_list": lambda *xs: np.log(sum(np.exp(x) for x in xs)),
    "softmax": softmax,
    "log_softmax": lambda x, axis: np.log(softmax(x, axis)),
    "layer_norm": layer_norm,
    "dropout": dropout,
    "pick": lambda x, index: x[index],
    "unpick": lambda x, index, size: np.array([x if i == index else x * 0 for i in range(size)]),
    "binary_entropy": lambda p, t: -(t * np.log(p) + (1 - t) * np.log(1 - p)),
    "cross_entropy": lambda x, label: -np.log(softmax(x, 0)[label]),
    "hinge": lambda x, label, margin: sum(max(0, margin + score - x[label]) for i, score in enumerate(x) if i != label),
    "binary_cross_entropy": lambda p, t: -np.sum(t * np.log(p) + (1 - t) * np.log(1 - p)),
    "squared_distance": lambda a, b: np.sum((a - b) ** 2),
    "l1_distance": lambda a, b: np.sum(abs(a - b)),
    "huber": huber,
    "lookup": lambda table, index: table[index],
}
