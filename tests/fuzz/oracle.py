"""What programs mean: EdBatch's interface on the tape, without batches, plans, kernels or cells.

The module stands in for `edbatch`: a program runs with either.
"""

from contextlib import contextmanager

import numpy as np

from tests.fuzz.collection import SGD, ParameterCollection
from tests.fuzz.rounding import rounding
from tests.fuzz.structured import InputGraph, Vertices, all, array, run, values, vertex
from tests.fuzz.tape import Expression, Graph, Operand, Parameter, apply, backward, current, gradients

__all__ = [
    "SGD", "Graph", "InputGraph", "ParameterCollection", "Vertices", "all", "array", "backward", "gradients",
    "rounding", "run", "values", "vertex",
]  # fmt: skip


def _function(name, operands, *attributes):
    """A public op with this many operands, then attributes by position or name."""

    def call(*given, **named):
        return apply(name, given[:operands], **dict(zip(attributes, given[operands:], strict=False)), **named)

    call.__name__ = name
    return call


def _of_axes_or_list(name):
    def call(x, *given, **named):
        listed = isinstance(x, list | tuple)
        lists = {"max": "maximum_list", "min": "minimum_list"}
        return (
            apply(lists.get(name, f"{name}_list"), x)
            if listed
            else _function(name, 1, "axis", "keepdims")(x, *given, **named)
        )

    call.__name__ = name
    return call


def _of_two_or_list(name):
    return lambda a, b=None: apply(f"{name}_list", a) if b is None else apply(name, (a, b))


neg = _function("neg", 1)
abs = _function("abs", 1)
square = _function("square", 1)
sqrt = _function("sqrt", 1)
exp = _function("exp", 1)
log = _function("log", 1)
tanh = _function("tanh", 1)
sigmoid = _function("sigmoid", 1)
relu = _function("relu", 1)
gelu = _function("gelu", 1)
silu = _function("silu", 1)
softplus = _function("softplus", 1)
softsign = _function("softsign", 1)
log_sigmoid = _function("log_sigmoid", 1)
erf = _function("erf", 1)
erfc = _function("erfc", 1)
sin = _function("sin", 1)
cos = _function("cos", 1)
stop_gradient = _function("stop_gradient", 1)
add = _function("add", 2)
subtract = _function("subtract", 2)
multiply = _function("multiply", 2)
divide = _function("divide", 2)
power = _function("power", 2)
greater = _function("greater", 2)
greater_equal = _function("greater_equal", 2)
less = _function("less", 2)
less_equal = _function("less_equal", 2)
equal = _function("equal", 2)
not_equal = _function("not_equal", 2)
where = _function("where", 3)
argmax = _function("argmax", 1, "axis", "keepdims")
argmin = _function("argmin", 1, "axis", "keepdims")
k_max_pool = _function("k_max_pool", 1, "k", "axis")
cumsum = _function("cumsum", 1, "axis")
pad = _function("pad", 1, "pad_width", "constant_values")
unfold = _function("unfold", 1, "kernel_size", "dilation", "padding", "stride")
max_pool1d, max_pool2d, avg_pool1d, avg_pool2d = (
    _function(f"{_name}_pool{_n}d", 1, "kernel_size", "stride", "padding", "dilation")
    for _name in ("max", "avg")
    for _n in (1, 2)
)
conv1d, conv2d = (_function(f"conv{_n}d", 2) for _n in (1, 2))
matmul = _function("matmul", 2)
dot = _function("dot", 2)
binary_cross_entropy = _function("binary_cross_entropy", 2)
squared_distance = _function("squared_distance", 2)
l1_distance = _function("l1_distance", 2)
leaky_relu = _function("leaky_relu", 1, "slope")
elu = _function("elu", 1, "alpha")
clip = _function("clip", 1, "low", "high")
scale_gradient = _function("scale_gradient", 1, "scale")
log_softmax = _function("log_softmax", 1, "axis")
std = _function("std", 1, "axis", "keepdims")
pick = _function("pick", 1, "index")
norm = _function("norm", 1, "axis", "keepdims")
_hinge = _function("hinge", 1, "label", "margin")
flip = _function("flip", 1, "axis")
transpose = _function("transpose", 1, "axes")
reshape = _function("reshape", 1, "shape")
index = _function("index", 1, "key")
huber = _function("huber", 2, "delta")
layer_norm = _function("layer_norm", 3, "epsilon")
affine = _function("affine", 3)
sum, mean, logsumexp = (_of_axes_or_list(_name) for _name in ("sum", "mean", "logsumexp"))
max, min = _of_axes_or_list("max"), _of_axes_or_list("min")
maximum, minimum = _of_two_or_list("maximum"), _of_two_or_list("minimum")


def softmax(x, axis=-1):
    if isinstance(x, list):
        y = apply("softmax", (stack(x),), axis=0)
        return [y[at] for at in range(len(x))]
    return apply("softmax", (x,), axis=axis)


def dots(query, keys):
    return [dot(query, key) for key in keys]


def weighted_sum(weights, values):
    return apply("weighted_sum", (*weights, *values))


def attention(query, keys, values, scale=None, heads=1):
    if scale is None or scale is True:
        scale = (query.shape[0] / heads) ** -0.5
    return apply("attention", (query, *keys, *values), scale=float(scale or 1.0), heads=heads)


def concatenate(xs, axis=0):
    return apply("concatenate", xs, axis=axis)


def stack(xs, axis=0):
    return apply("stack", xs, axis=axis)


def _counted(index, size):
    """Integers from the beginning; an expression as it is."""
    if isinstance(index, Operand):
        return index
    index = np.asarray(index)
    if (index < -size).any() or (index >= size).any():
        raise IndexError(f"out of range for {size} entries")
    return index % size


def one_hot(index, size):
    return apply("one_hot", (_counted(index, size),), size=size)


def gather(x, index, axis):
    return apply("gather", (x, _counted(index, x.shape[axis])), axis=axis)


def scatter(x, index, values, axis):
    return apply("scatter", (x, _counted(index, x.shape[axis]), values), axis=axis)


def scatter_add(x, index, values, axis):
    return apply("scatter_add", (x, _counted(index, x.shape[axis]), values), axis=axis)


def top_k(x, k, axis=-1):
    return apply("top_k", (x,), k=k, axis=axis), apply("top_k_numbers", (x,), k=k, axis=axis)


def hinge(scores, label, *margin, **named):
    if label < 0:
        raise ValueError("a negative label is refused")
    return _hinge(scores, label, *margin, **named)


def cross_entropy(logits, label, label_smoothing=0.0):
    """Of a label or a distribution, of which a part may be spread evenly over all classes."""
    if isinstance(label, int | np.ndarray) and np.min(label) < 0:
        raise ValueError("a negative label is refused")
    hard = (
        apply("cross_entropy", (logits,), label=label) if isinstance(label, int) else -dot(label, log_softmax(logits))
    )
    return (1 - label_smoothing) * hard - label_smoothing * mean(log_softmax(logits)) if label_smoothing else hard


def dropout(x, rate, seed):
    """x itself where nothing is trained or dropped."""
    return apply("dropout", (x,), rate=rate, seed=seed) if current().training and rate else x


def squeeze(x, axis=None):
    sizes = list(x.shape)
    if axis is None:
        return reshape(x, [size for size in sizes if size != 1])
    if sizes.pop(axis) != 1:
        raise ValueError("an axis of another size")
    return reshape(x, sizes)


def unsqueeze(x, axis):
    return reshape(x, np.expand_dims(x.data, axis).shape)


def swapaxes(x, first, second):
    order = list(range(len(x.shape)))
    order[first], order[second] = order[second], order[first]
    return transpose(x, order)


def split(x, parts, axis=0):
    """Slices, one after the other."""
    size = x.shape[axis]
    sizes = [size // parts] * parts if isinstance(parts, int) else parts
    if np.sum(sizes) != size:
        raise ValueError("sizes that do not add up")
    ends = np.cumsum(sizes)
    before = (slice(None),) * (axis % len(x.shape))
    return [index(x, (*before, slice(int(end - n), int(end)))) for n, end in zip(sizes, ends, strict=True)]


def input(value):
    return Expression(np.array(value, np.float64))


scalar = input


def number(value):
    return current().constant((float, np.float64(value).tobytes()), lambda: Expression(value))


def zeros(shape):
    return current().constant(("zeros", shape), lambda: Expression(np.zeros(shape)))


def ones(shape):
    return current().constant(("ones", shape), lambda: Expression(np.ones(shape)))


def parameter(of):
    return of.node()


def lookup(table, index):
    def pull(g):
        whole = np.zeros(table.shape)
        whole[index] = g
        return whole

    return Expression(table.data[index].copy(), ((table, pull),))


def forward(expressions):
    return [x.value() for x in expressions]


def cell(function):
    """Without the decorator the same code gives the same numbers; arguments and results are expressions."""

    def call(*given, **static):
        given = [
            number(x) if isinstance(x, float) else Expression(x) if isinstance(x, np.ndarray) else x for x in given
        ]
        found = function(*given, **static)
        several = isinstance(found, tuple)
        made = tuple(parameter(x) if isinstance(x, Parameter) else x for x in (found if several else (found,)))
        return made if several else made[0]

    return call


@contextmanager
def options(training=True, **_):
    """Of all options one changes what is computed."""
    kept, Graph.training = Graph.training, training
    try:
        yield
    finally:
        Graph.training = kept


_BINARY = {"add": add, "sub": subtract, "mul": multiply, "truediv": divide, "pow": power, "matmul": matmul}
for _name, _call in _BINARY.items():
    setattr(Operand, f"__{_name}__", lambda self, other, call=_call: call(self, other))
    setattr(Operand, f"__r{_name}__", lambda self, other, call=_call: call(other, self))
Operand.__gt__, Operand.__ge__, Operand.__lt__, Operand.__le__ = greater, greater_equal, less, less_equal
Operand.__neg__, Operand.__abs__, Operand.T = neg, abs, property(transpose)
Expression.__getitem__ = index
Parameter.__getitem__ = lambda self, key: lookup(self, key) if self.is_table else index(self, key)
Operand.reshape = Operand.view = lambda self, *shape: reshape(self, shape)
Operand.permute = lambda self, *axes: transpose(self, axes)
Operand.chunk, Operand.clamp, Operand.pow, Operand.detach, Operand.t = split, clip, power, stop_gradient, transpose
Operand.flatten = lambda self: reshape(self, -1)
for _call in (
    sum, mean, std, max, min, logsumexp, norm, softmax, log_softmax, abs, exp, log, sqrt, square, sin, cos, erf, tanh,
    sigmoid, relu, clip, dot, matmul, squeeze, unsqueeze, transpose, swapaxes, flip,
):  # fmt: skip
    setattr(Operand, _call.__name__, _call)


def replay(function):
    """A function that is called each time."""
    return function
