"""The ops, by family; importing this package fills the op table and sets the operators of expressions."""

from edbatch.graph.ops.elementwise import (
    absolute,
    add,
    clip,
    cos,
    divide,
    elu,
    erf,
    exp,
    gelu,
    leaky_relu,
    log,
    log_sigmoid,
    multiply,
    negative,
    pow,
    relu,
    sigmoid,
    silu,
    sin,
    softplus,
    softsign,
    sqrt,
    square,
    subtract,
    tanh,
)
from edbatch.graph.ops.inputs import input, lookup, ones, parameter, scalar, zeros
from edbatch.graph.ops.loss import (
    binary_cross_entropy,
    cross_entropy,
    hinge,
    huber,
    l1_distance,
    pick,
    squared_distance,
)
from edbatch.graph.ops.matrix import dot, matmul
from edbatch.graph.ops.normalize import dropout, layer_norm, log_softmax, softmax
from edbatch.graph.ops.reduce import logsumexp, max, maximum, mean, min, minimum, norm, std, sum
from edbatch.graph.ops.shape import concatenate, flip, reshape, split, stack, stop_gradient, transpose

__all__ = [name for name in dir() if not name.startswith("_") and name not in ("annotations", "elementwise", "inputs", "loss", "matrix", "normalize", "reduce", "shape")]
