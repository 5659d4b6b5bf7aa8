"""What recording costs: every public op, and the ways to call it, in microseconds a call.

    python -m scripts.bench.recording [--json] [--rounds 15] [--calls 200]

Calls of one form in one graph, after two that were not timed: the thread's processor time a call, of the fastest round,
since whatever else runs can only add to it. Forms take turns. Nothing is computed.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable
from time import thread_time
from types import SimpleNamespace
from typing import Any

import numpy as np

import edbatch as eb
from scripts.bench import arrays
from scripts.bench.report import Tables, command

Form = Callable[[Any], Any]

_NUMBERS = [1, 0, 3]
_ARRAY = np.array(_NUMBERS)
_MASK = np.array([True, False, True, True] + [False] * 4)
_ROW = np.ones(8)


def operands() -> Any:
    """x, y: vectors; X: a matrix; I: an image; n: an index; xs: a list; W and so on: parameters."""
    model = eb.ParameterCollection(seed=0)
    return SimpleNamespace(
        x=eb.input(_ROW),
        y=eb.input(_ROW / 2),
        X=eb.input(np.ones((8, 8))),
        S=eb.input(np.ones((2, 8, 8))),
        I=eb.input(np.ones((2, 8, 8))),
        n=eb.input([1.0, 0.0, 3.0]),
        v=eb.input([5.0, 6.0, 7.0]),
        s=eb.input(2.0),
        xs=[eb.input(_ROW) for _ in range(4)],
        ws=[eb.input(0.25) for _ in range(4)],
        keys=eb.ExpressionList([eb.input(_ROW) for _ in range(4)]),
        W=model.add_parameters((8, 8)),
        b=model.add_parameters(8),
        table=model.add_lookup_parameters((50, 8)),
        K1=model.add_parameters((4, 8, 3)),
        K2=model.add_parameters((4, 2, 3, 3)),
    )


def _plain(*names: str) -> dict[str, Form]:
    """Functions of a vector."""

    def form(call: Callable[..., Any]) -> Form:
        return lambda o: call(o.x)

    return {name: form(getattr(eb, name)) for name in names}


def _both(*names: str) -> dict[str, Form]:
    """Functions of two vectors."""

    def form(call: Callable[..., Any]) -> Form:
        return lambda o: call(o.x, o.y)

    return {name: form(getattr(eb, name)) for name in names}


#: Of one value or a few: at most 3 us.
OPS: dict[str, Form] = {
    **_plain(
        "abs",
        "argmax",
        "argmin",
        "cos",
        "elu",
        "erf",
        "erfc",
        "exp",
        "flip",
        "gelu",
        "leaky_relu",
        "log",
        "log_sigmoid",
        "log_softmax",
        "logsumexp",
        "max",
        "mean",
        "min",
        "neg",
        "norm",
        "relu",
        "sigmoid",
        "silu",
        "sin",
        "softmax",
        "softplus",
        "softsign",
        "sqrt",
        "square",
        "std",
        "stop_gradient",
        "sum",
        "tanh",
        "transpose",
    ),
    **_both(
        "add",
        "binary_cross_entropy",
        "divide",
        "dot",
        "equal",
        "greater",
        "greater_equal",
        "huber",
        "l1_distance",
        "less",
        "less_equal",
        "matmul",
        "maximum",
        "minimum",
        "multiply",
        "not_equal",
        "power",
        "squared_distance",
        "subtract",
    ),
    "x + 0.5": lambda o: o.x + 0.5,
    "0.5 * x": lambda o: 0.5 * o.x,
    "x ** 2": lambda o: o.x**2,
    "x ** 3": lambda o: o.x**3,
    "x > 0": lambda o: o.x > 0,
    "sum, axis": lambda o: eb.sum(o.X, 0),
    "sum, list of axes": lambda o: eb.sum(o.X, [0, 1]),
    "mean, two axes": lambda o: eb.mean(o.X, (0, 1)),
    "std, keepdims": lambda o: eb.std(o.X, 1, True),
    "softmax, NumPy's axis": lambda o: eb.softmax(o.X, np.int64(0)),
    "clip": lambda o: eb.clip(o.x, -1, 1),
    "cumsum": lambda o: eb.cumsum(o.x, 0),
    "scale_gradient": lambda o: eb.scale_gradient(o.x, 0.5),
    "scale_gradient, 0": lambda o: eb.scale_gradient(o.x, 0.0),
    "where": lambda o: eb.where(o.x, o.x, o.y),
    "where, a number": lambda o: eb.where(o.x, o.x, 0.5),
    "top_k": lambda o: eb.top_k(o.x, 3),
    "k_max_pool": lambda o: eb.k_max_pool(o.x, 3),
    "gather": lambda o: eb.gather(o.x, o.n, 0),
    "scatter": lambda o: eb.scatter(o.x, o.n, o.v, 0),
    "scatter_add": lambda o: eb.scatter_add(o.x, o.n, o.v, 0),
    "one_hot": lambda o: eb.one_hot(o.s, 8),
    "one_hot, an integer": lambda o: eb.one_hot(2, 8),
    "pad": lambda o: eb.pad(o.x, 1),
    "pad, a pair": lambda o: eb.pad(o.x, (0, 2), 9.0),
    "pad, pairs": lambda o: eb.pad(o.X, ((1, 0), (0, 1))),
    "unfold": lambda o: eb.unfold(o.I, 2, padding=[0, 1]),
    "conv1d": lambda o: eb.conv1d(o.X, o.K1, padding=1),
    "conv2d": lambda o: eb.conv2d(o.I, o.K2, padding=1),
    "conv2d, pairs": lambda o: eb.conv2d(o.I, o.K2, stride=(1, 2), padding=(1, 0)),
    "max_pool1d": lambda o: eb.max_pool1d(o.X, 2),
    "max_pool2d": lambda o: eb.max_pool2d(o.I, (2, 2)),
    "avg_pool1d": lambda o: eb.avg_pool1d(o.X, 2),
    "avg_pool2d": lambda o: eb.avg_pool2d(o.I, 2),
    "layer_norm": lambda o: eb.layer_norm(o.x, o.b, o.b),
    "dropout": lambda o: eb.dropout(o.x, 0.5),
    "cross_entropy": lambda o: eb.cross_entropy(o.x, 2),
    "cross_entropy, smoothed": lambda o: eb.cross_entropy(o.x, 2, 0.1),
    "cross_entropy, distribution": lambda o: eb.cross_entropy(o.x, o.y),
    "hinge": lambda o: eb.hinge(o.x, 2),
    "pick": lambda o: eb.pick(o.x, 3),
    "W @ x": lambda o: o.W @ o.x,
    "S @ S": lambda o: o.S @ o.S,
    "affine": lambda o: eb.affine(o.W, o.x, o.b),
    "lookup": lambda o: eb.lookup(o.table, 3),
    "parameter": lambda o: eb.parameter(o.W),
    "tanh(b)": lambda o: eb.tanh(o.b),
    "b * 0.5": lambda o: o.b * 0.5,
    "W + W": lambda o: o.W + o.W,
    "sum(W)": lambda o: eb.sum(o.W),
    "W.T": lambda o: o.W.T,
    "W[2]": lambda o: o.W[2],
    "W[1, 2]": lambda o: o.W[1, 2],
    "x[3]": lambda o: o.x[3],
    "x[2:5]": lambda o: o.x[2:5],
    "x[:, None]": lambda o: o.x[:, None],
    "X[1:3, ::2]": lambda o: o.X[1:3, ::2],
    "split": lambda o: eb.split(o.x, 4),
    "split, a list": lambda o: eb.split(o.x, [3, 5]),
    "reshape": lambda o: eb.reshape(o.x, (2, 4)),
    "reshape, a list": lambda o: eb.reshape(o.x, [2, -1]),
    "transpose, a list": lambda o: eb.transpose(o.X, [1, 0]),
    "swapaxes": lambda o: eb.swapaxes(o.X, 0, 1),
    "squeeze": lambda o: eb.squeeze(o.x[:1]),
    "unsqueeze": lambda o: eb.unsqueeze(o.x, 0),
    "scalar": lambda o: eb.scalar(1.0),
    "zeros": lambda o: eb.zeros(8),
    "ones": lambda o: eb.ones((2, 4)),
}
#: What copies an array: at most 4 us.
ARRAYS: dict[str, Form] = {
    "input": lambda o: eb.input(_ROW),
    "input of a list": lambda o: eb.input([1.0, 2.0, 3.0]),
    "x + array": lambda o: o.x + _ROW,
    "where, an array": lambda o: eb.where(_MASK, o.x, o.y),
    "one_hot, a list": lambda o: eb.one_hot(_NUMBERS, 8),
    "one_hot, an array": lambda o: eb.one_hot(_ARRAY, 8),
    "gather, a list": lambda o: eb.gather(o.x, _NUMBERS, 0),
    "gather, an array": lambda o: eb.gather(o.x, _ARRAY, 0),
    "scatter, a list": lambda o: eb.scatter(o.x, _NUMBERS, o.v, 0),
    "scatter_add, an array": lambda o: eb.scatter_add(o.x, _ARRAY, o.v, 0),
    "x[list]": lambda o: o.x[_NUMBERS],
    "x[array]": lambda o: o.x[_ARRAY],
    "x[mask]": lambda o: o.x[_MASK],
    "X[list]": lambda o: o.X[_NUMBERS],
    "X[:, list]": lambda o: o.X[:, _NUMBERS],
    "X[1, list]": lambda o: o.X[1, _NUMBERS],
    "cross_entropy, an array": lambda o: eb.cross_entropy(o.x, _ROW),
}
#: Of lists of four: at most 1 us and 0.2 us an element.
LISTS: dict[str, Form] = {
    "sum": lambda o: eb.sum(o.xs),
    "mean": lambda o: eb.mean(o.xs),
    "max": lambda o: eb.max(o.xs),
    "minimum": lambda o: eb.minimum(o.xs),
    "logsumexp": lambda o: eb.logsumexp(o.xs),
    "concatenate": lambda o: eb.concatenate(o.xs),
    "stack": lambda o: eb.stack(o.xs),
    "softmax": lambda o: eb.softmax(o.xs),
    "dots": lambda o: eb.dots(o.x, o.xs),
    "weighted_sum": lambda o: eb.weighted_sum(o.ws, o.xs),
    "attention": lambda o: eb.attention(o.x, o.xs, o.xs),
    "attention, ExpressionList": lambda o: eb.attention(o.x, o.keys, o.keys),
    "ExpressionList": lambda o: eb.ExpressionList(o.xs),
    "table[list]": lambda o: o.table[_NUMBERS],
}
KINDS = {"ops": OPS, "ops that copy an array": ARRAYS, "ops of lists of four": LISTS}


def timed(form: Form, calls: int) -> float:
    """Microseconds a call."""
    with eb.Graph(policy="sufficient"):
        given = operands()
        form(given), form(given)
        gc.collect()
        gc.disable()
        try:
            start = thread_time()
            for _ in range(calls):
                form(given)
            return (thread_time() - start) / calls * 1e6
        finally:
            gc.enable()


def tables(options: argparse.Namespace) -> Tables:
    """All forms, the dearest first."""
    (calls,) = options.calls
    forms = [(kind, name, form) for kind, named in KINDS.items() for name, form in named.items()]
    best: dict[tuple[str, str], float] = {}
    for _ in range(options.rounds):
        for kind, name, form in forms:
            best[kind, name] = min(best.get((kind, name), float("inf")), timed(form, calls))
    order = sorted(best, key=lambda key: -best[key])
    return {
        f"Recording: {kind}": [{"call": key[1], "us": best[key]} for key in order if key[0] == kind] for kind in KINDS
    } | arrays.tables(options)


main = command(__doc__, tables, rounds=15, calls=(200,))

if __name__ == "__main__":
    main()
