"""The ops, by family; importing this package fills the op table and sets the operators of expressions."""

import sys

from edbatch.graph import methods
from edbatch.graph.ops import declaring as _declaring
from edbatch.graph.ops import index as _index  # noqa: F401 (it sets an operator)
from edbatch.graph.ops.along_axis import cumsum, k_max_pool, top_k
from edbatch.graph.ops.convolve import conv1d, conv2d
from edbatch.graph.ops.elementwise import (
    abs,
    add,
    clip,
    cos,
    divide,
    elu,
    equal,
    erf,
    erfc,
    exp,
    gelu,
    greater,
    greater_equal,
    leaky_relu,
    less,
    less_equal,
    log,
    log_sigmoid,
    multiply,
    neg,
    not_equal,
    power,
    relu,
    scale_gradient,
    sigmoid,
    silu,
    sin,
    softplus,
    softsign,
    sqrt,
    square,
    subtract,
    tanh,
    where,
)
from edbatch.graph.ops.indices import argmax, argmin, gather, one_hot, scatter, scatter_add
from edbatch.graph.ops.inputs import input, lookup, ones, parameter, scalar, zeros
from edbatch.graph.ops.lists import attention, dots, weighted_sum
from edbatch.graph.ops.loss import (
    binary_cross_entropy,
    cross_entropy,
    hinge,
    huber,
    l1_distance,
    pick,
    squared_distance,
)
from edbatch.graph.ops.matrix import affine, dot, matmul
from edbatch.graph.ops.normalize import dropout, layer_norm, log_softmax, softmax
from edbatch.graph.ops.place import concatenate, stack
from edbatch.graph.ops.pool import avg_pool1d, avg_pool2d, max_pool1d, max_pool2d
from edbatch.graph.ops.reduce import logsumexp, max, maximum, mean, min, minimum, norm, std, sum
from edbatch.graph.ops.shape import flip, reshape, split, squeeze, stop_gradient, swapaxes, transpose, unsqueeze
from edbatch.graph.ops.windows import pad, unfold

__all__ = [
    "abs", "add", "affine", "argmax", "argmin", "attention", "avg_pool1d", "avg_pool2d", "binary_cross_entropy", "clip",
    "concatenate", "conv1d", "conv2d", "cos", "cross_entropy", "cumsum", "divide", "dot", "dots", "dropout", "elu",
    "equal", "erf", "erfc", "exp", "flip", "gather", "gelu", "greater", "greater_equal", "hinge", "huber", "input",
    "k_max_pool", "l1_distance", "layer_norm", "leaky_relu", "less", "less_equal", "log", "log_sigmoid", "log_softmax",
    "logsumexp", "lookup", "matmul", "max", "max_pool1d", "max_pool2d", "maximum", "mean", "min", "minimum", "multiply",
    "neg", "norm", "not_equal", "one_hot", "ones", "pad", "parameter", "pick", "power", "relu", "reshape", "scalar",
    "scale_gradient", "scatter", "scatter_add", "sigmoid", "silu", "sin", "softmax", "softplus", "softsign", "split",
    "sqrt", "square", "squared_distance", "squeeze", "stack", "std", "stop_gradient", "subtract", "sum", "swapaxes",
    "tanh", "top_k", "transpose", "unfold", "unsqueeze", "weighted_sum", "where", "zeros",
]  # fmt: skip

methods.ops = sys.modules[__name__]  # type: ignore[attr-defined]
for _function in (
    abs, clip, cos, dot, erf, exp, flip, log, log_softmax, logsumexp, matmul, max, mean, min, relu, sigmoid, sin,
    softmax, sqrt, square, squeeze, std, sum, swapaxes, tanh, unsqueeze,
):  # fmt: skip
    setattr(methods.Methods, _function.__name__, _function)
for _name, _other in {"chunk": split, "detach": stop_gradient, "pow": power}.items():
    setattr(methods.Methods, _name, _other)
for _name in __all__:
    globals()[_name].__doc__ = _declaring.with_example(globals()[_name].__doc__)
