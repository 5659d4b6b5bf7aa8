"""Every public function of expressions, written once for one expression and for an array of them; and what is given."""

import numpy as np

import edbatch as eb
from edbatch.graph.expression_array import ExpressionArray

#: How far gradients may be off, which are added up in another order.
BITS = {"float32": 1e-5, "float64": 1e-13}


def part(x, *key):
    """`x[key]` of one expression, or of each entry of an array."""
    return x[(slice(None), *key)] if x.__class__ is ExpressionArray else x[key]


def of_one(name, *more, **keywords):
    return lambda x, y, k, p: getattr(eb, name)(x, *more, **keywords)


def of_two(name, *more):
    return lambda x, y, k, p: getattr(eb, name)(x, y, *more)


def of_both(name, *more, **keywords):
    """Of a list of two."""
    return lambda x, y, k, p: getattr(eb, name)([x, y], *more, **keywords)


def matrix(x):
    return eb.reshape(x, (2, 4))


ONE = (
    "abs", "cos", "elu", "erf", "erfc", "exp", "gelu", "leaky_relu", "log", "log_sigmoid", "neg", "relu", "sigmoid",
    "silu", "sin", "softplus", "softsign", "sqrt", "square", "tanh", "stop_gradient", "argmax", "argmin",
)  # fmt: skip
AXIS = ("sum", "mean", "max", "min", "logsumexp", "std", "norm", "softmax", "log_softmax", "cumsum", "flip")
TWO = (
    "add", "subtract", "multiply", "divide", "power", "maximum", "minimum", "dot", "matmul", "squared_distance",
    "l1_distance", "huber", "binary_cross_entropy", "greater", "greater_equal", "less", "less_equal", "equal",
    "not_equal",
)  # fmt: skip
LISTS = ("sum", "mean", "maximum", "minimum", "max", "min", "logsumexp", "softmax", "concatenate", "stack")

#: x, y: vectors of 8 numbers in (0, 1), or arrays of such; k: an integer below 8, or an array of integers; p: a model's
#: matrix W [8, 8], vector b [8] and table [8, 8]. Of one each gives an expression, or several in a nesting.
USES = {
    **{name: of_one(name) for name in ONE},
    **{name: of_one(name, axis=0) for name in AXIS},
    **{name: of_two(name) for name in TWO},
    **{f"{name} of a list": of_both(name) for name in LISTS},
    "affine": lambda x, y, k, p: eb.affine(p.W, x, p.b),
    "affine of expressions": lambda x, y, k, p: eb.affine(matrix(x), part(y, slice(4)), part(y, slice(2))),
    "attention": lambda x, y, k, p: eb.attention(x, [y, x, x], [x, y, y], heads=2),
    "avg_pool1d": lambda x, y, k, p: eb.avg_pool1d(matrix(x), 2, 1),
    "avg_pool2d": lambda x, y, k, p: eb.avg_pool2d(eb.reshape(x, (1, 2, 4)), 2, 1),
    "clip": of_one("clip", 0.2, 0.7),
    "conv1d": lambda x, y, k, p: eb.conv1d(matrix(x), eb.reshape(y, (2, 2, 2))),
    "conv2d": lambda x, y, k, p: eb.conv2d(eb.reshape(x, (1, 2, 4)), eb.reshape(y, (2, 1, 2, 2))),
    "cross_entropy": lambda x, y, k, p: eb.cross_entropy(x, k),
    "cross_entropy, smoothed": lambda x, y, k, p: eb.cross_entropy(x, k, label_smoothing=0.1),
    "cross_entropy of distributions": lambda x, y, k, p: eb.cross_entropy(x, y, label_smoothing=0.1),
    "dots": lambda x, y, k, p: eb.dots(x, [y, x]),
    "dropout": lambda x, y, k, p: eb.dropout(x, 0.5, seed=k),
    "gather": lambda x, y, k, p: eb.gather(x, [1, 0, 1, -1], axis=0),
    "gather by numbers": lambda x, y, k, p: eb.gather(x, eb.argmax(matrix(y), axis=1), axis=0),
    "hinge": lambda x, y, k, p: eb.hinge(x, k, margin=0.5),
    "index": lambda x, y, k, p: (part(x, 3), part(x, slice(1, None, 2)), part(matrix(x), slice(None), 1)),
    "index by lists": lambda x, y, k, p: (part(x, [2, 2, 0]), part(matrix(x), None, [True, False])),
    "k_max_pool": of_one("k_max_pool", 3),
    "layer_norm": lambda x, y, k, p: eb.layer_norm(x, y, p.b),
    "linear": lambda x, y, k, p: eb.tanh(p.W @ x + y @ p.W + p.b * 0.5 - 1),
    "lookup": lambda x, y, k, p: x * eb.lookup(p.table, k),
    "max_pool1d": lambda x, y, k, p: eb.max_pool1d(matrix(x), 2, 1),
    "max_pool2d": lambda x, y, k, p: eb.max_pool2d(eb.reshape(x, (1, 2, 4)), 2, 1),
    "one_hot": lambda x, y, k, p: eb.one_hot(eb.argmax(x), 8) * y,
    "operators": lambda x, y, k, p: -abs(x) + y / 2 - 3 * x**2 + (x > y) * (x <= 0.5) + 1 / x,
    "pad": of_one("pad", (1, 2), 0.5),
    "parameter": lambda x, y, k, p: eb.parameter(p.W) @ x,
    "pick": lambda x, y, k, p: (eb.pick(x, k), eb.pick(p.W, k)),
    "reshape": lambda x, y, k, p: matrix(x).T.reshape(-1) * y,
    "scale_gradient": of_one("scale_gradient", -0.5),
    "scatter": lambda x, y, k, p: eb.scatter(x, [1, 5], part(y, slice(2)), axis=0),
    "scatter_add": lambda x, y, k, p: eb.scatter_add(x, [1, 1], part(y, slice(2)), axis=0),
    "split": of_one("split", (2, 6)),
    "squeeze": lambda x, y, k, p: eb.squeeze(eb.unsqueeze(x, 1), 1) * y,
    "stacks": lambda x, y, k, p: eb.reshape(x, (2, 2, 2)) @ eb.reshape(y, (2, 2, 2)),
    "swapaxes": lambda x, y, k, p: eb.swapaxes(matrix(x), 0, 1),
    "top_k": of_one("top_k", 3),
    "transpose": lambda x, y, k, p: eb.transpose(matrix(x)) @ matrix(y),
    "unfold": lambda x, y, k, p: eb.unfold(eb.reshape(x, (1, 2, 4)), 2),
    "unsqueeze": lambda x, y, k, p: eb.unsqueeze(x, 0) * y,
    "weighted_sum": lambda x, y, k, p: eb.weighted_sum([part(x, 0), part(y, 1)], [x, y]),
    "where": lambda x, y, k, p: eb.where(x > y, x, 2.0),
}

#: What enters a graph, and takes no expression.
SOURCES = {"input", "ones", "scalar", "zeros"}


class Model:
    """Parameters, and arguments of the uses."""

    def __init__(self, dtype="float64"):
        model = self.all = eb.ParameterCollection(seed=1, dtype=dtype)
        self.W = model.add_parameters((8, 8), name="W")
        self.b = model.add_parameters(8, name="b", init="normal")
        self.table = model.add_lookup_parameters((8, 8), name="table", init="normal")

    def gradients(self):
        found = {p.name: p.grad() for p in (self.W, self.b, self.table)}
        self.all.zero_grad()
        return found


def given(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(0.05, 0.95, (2, n, 8)), rng.integers(0, 8, n)


def assert_same(found, expected, dtype="float64"):
    for a, b in zip(found[0], expected[0], strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(found[1], expected[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=BITS[dtype], atol=BITS[dtype])
    for name, gradient in expected[2].items():
        np.testing.assert_allclose(found[2][name], gradient, rtol=10 * BITS[dtype], atol=10 * BITS[dtype])
    assert found[3].batches == expected[3].batches
