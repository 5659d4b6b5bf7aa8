"""Every op of the table in the place of tanh in a recurrent cell: what a step costs beside tanh's.

    python -m scripts.bench.ops [--json] [--rounds 7] [--hidden 128] [--batch 32] [--steps 20]

h' = op(W h + x), float32, one thread; what does not give a vector of h's size is subtracted from W h + x. All cells
take turns. Each is compared with the one of tanh: forward, and with the way back; and so is the op alone, of as many
rows in one batch, for what its arithmetic costs. Asked is at most 1.5 times the cell of tanh, or what the arithmetic
explains.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.experiments.measure import Runs, interleaved
from edbatch.graph.op import OPS, Kind, Op
from edbatch.graph.ops import compare, convolve, indices, loss, matrix, pool, shape
from edbatch.graph.record import record
from scripts.bench.report import Tables, command

ASKED = 1.5

Use = Callable[[Any, Any, Any, Any], Any]


def of_one(name: str) -> Use:
    """A function of W h + x."""
    call = getattr(eb, name)
    return lambda y, x, W, k: call(y)


def of_two(name: str) -> Use:
    """A function of W h + x and x."""
    call = getattr(eb, name)
    return lambda y, x, W, k: call(y, x)


def of_list(name: str) -> Use:
    """A function of a list."""
    call = getattr(eb, name)
    return lambda y, x, W, k: call([y, x, y])


def correlated(x: Any, rows: Any) -> Any:
    """Windows of three entries."""
    return record(convolve.CORRELATE, (x, rows), sizes=(3,), stride=(1,), dilation=(1,), groups=1)[0, 0]


def indexed(op: Op, like: Any, *operands: Any) -> Any:
    """An op that puts entries where an index says."""
    return record(op, operands, shape_to=like.shape, axis=0)


ONE = (
    "abs", "cos", "elu", "erf", "erfc", "exp", "gelu", "leaky_relu", "log", "log_sigmoid", "neg", "relu", "sigmoid",
    "silu", "sin", "softplus", "softsign", "sqrt", "square", "tanh", "softmax", "log_softmax", "sum", "mean", "max",
    "min", "logsumexp", "std", "norm", "stop_gradient", "argmax", "argmin",
)  # fmt: skip
TWO = (
    "add", "subtract", "multiply", "divide", "power", "maximum", "minimum", "dot", "matmul", "squared_distance",
    "l1_distance", "huber", "binary_cross_entropy", "greater", "greater_equal", "less", "less_equal", "equal",
    "not_equal",
)  # fmt: skip
LISTS = ("sum", "mean", "maximum", "minimum", "logsumexp")

#: y: W h + x; x: the input; W: a matrix; k: an integer of the call. Of a vector, each gives a vector or a number.
USES: dict[str, Use] = {
    **{name: of_one(name) for name in ONE},
    **{name: of_two(name) for name in TWO},
    **{f"{name}_list": of_list(name) for name in LISTS},
    "where": lambda y, x, W, k: eb.where(y > x, y, x),
    "alike": lambda y, x, W, k: compare.alike(y, x),
    "first": lambda y, x, W, k: indices.first(y > x, ((0,), False)),
    "one_hot": lambda y, x, W, k: eb.one_hot(y[0], y.shape[0]),
    "gather": lambda y, x, W, k: eb.gather(y, eb.abs(x), 0),
    "scatter": lambda y, x, W, k: eb.scatter(y, x[:4], x[:4], 0),
    "scatter_add": lambda y, x, W, k: eb.scatter_add(y, x[:4], x[:4], 0),
    "added_at": lambda y, x, W, k: indexed(indices.ADDED_AT, y, eb.abs(x), y),
    "last_at": lambda y, x, W, k: indexed(indices.LAST_AT, y, eb.abs(x)),
    "top_k": lambda y, x, W, k: eb.top_k(y, 4)[1][0],
    "k_max_pool": lambda y, x, W, k: eb.k_max_pool(y, 4)[0],
    "cumsum": lambda y, x, W, k: eb.cumsum(y, 0),
    "unfold": lambda y, x, W, k: eb.unfold(y.reshape(2, 8, -1), 3, padding=1)[0, :1],
    "correlate": lambda y, x, W, k: correlated(y.reshape(2, -1), x[:6].reshape(1, 6)),
    "conv1d": lambda y, x, W, k: eb.conv1d(y.reshape(2, -1), x[:12].reshape(2, 2, 3), padding=1).reshape(-1),
    "conv2d": lambda y, x, W, k: eb.conv2d(y.reshape(2, 8, -1), x[:36].reshape(2, 2, 3, 3), padding=1).reshape(-1),
    "max_pool1d": lambda y, x, W, k: eb.max_pool1d(y.reshape(2, -1), 3, 1, 1).reshape(-1),
    "max_pool2d": lambda y, x, W, k: eb.max_pool2d(y.reshape(2, 8, -1), 3, 1, 1).reshape(-1),
    "avg_pool1d": lambda y, x, W, k: eb.avg_pool1d(y.reshape(2, -1), 3, 1, 1).reshape(-1),
    "avg_pool2d": lambda y, x, W, k: eb.avg_pool2d(y.reshape(2, 8, -1), 3, 1, 1).reshape(-1),
    "first_max": lambda y, x, W, k: pool.first_max(y, ((0,), False)),
    "scale_gradient": lambda y, x, W, k: eb.scale_gradient(y, 0.5),
    "clip": lambda y, x, W, k: eb.clip(y, -1, 1),
    "power_of": lambda y, x, W, k: y**3,
    "matmul_stack": lambda y, x, W, k: (y.reshape(2, 4, -1) @ x.reshape(2, -1, 4)).reshape(-1)[:1],
    "affine": lambda y, x, W, k: eb.affine(W, y, x),
    "outer": lambda y, x, W, k: matrix.outer(y[:8], x[:8]).reshape(-1)[:1],
    "index": lambda y, x, W, k: y[::-1],
    "embed": lambda y, x, W, k: shape.embed(y[::2], y.shape, ((0, None, 2),)),
    "reshape": lambda y, x, W, k: y.reshape(2, -1).T.reshape(-1),
    "transpose": lambda y, x, W, k: y.reshape(2, -1).T.reshape(-1),
    "concatenate": lambda y, x, W, k: eb.concatenate([y[1:], x[:1]]),
    "stack": lambda y, x, W, k: eb.stack([y[::2], x[::2]], axis=1).reshape(-1),
    "attention": lambda y, x, W, k: eb.attention(y, [x, y], [y, x]),
    "weighted_sum": lambda y, x, W, k: eb.weighted_sum([y[0], x[0]], [y, x]),
    "exp_difference": lambda y, x, W, k: eb.softmax([y, x])[0],
    "layer_norm": lambda y, x, W, k: eb.layer_norm(y, x, x),
    "dropout": lambda y, x, W, k: eb.dropout(y, 0.5),
    "pick": lambda y, x, W, k: eb.pick(y, k),
    "unpick": lambda y, x, W, k: loss.unpick(y[0], k, y.shape[0]),
    "omit": lambda y, x, W, k: loss.omit(y, k),
    "binary_entropy": lambda y, x, W, k: loss.binary_entropy_of(y, x),
    "cross_entropy": lambda y, x, W, k: eb.cross_entropy(y, k),
    "hinge": lambda y, x, W, k: eb.hinge(y, k),
    "lookup": lambda y, x, W, k: eb.sum(W[k]),
}


class Recurrent:
    """A cell with an op in it, and the op alone."""

    def __init__(self, name: str, hidden: int) -> None:
        use = USES[name]
        model = eb.ParameterCollection(seed=0)
        W = model.add_parameters((hidden, hidden), name="W")
        table = model.add_lookup_parameters((hidden, hidden), name="table")

        def op(y: Any, x: Any, k: int) -> Any:
            found = use(y, x, table if name == "lookup" else W, k)
            return found if found.shape == y.shape else y - found

        def step(h: Any, x: Any, k: int) -> Any:
            return op(W @ h + x, x, k)

        self.model, self.step, self.op = model, eb.cell(step), eb.cell(op)

    def forward(self, inputs: np.ndarray) -> Any:
        """The sum of the last states of sequences [batch, steps, hidden]."""
        last = []
        for sequence in inputs:
            h = eb.input(sequence[0])
            for k, x in enumerate(sequence):
                h = self.step(h, eb.input(x), k)
            last.append(h)
        return eb.sum([eb.sum(h) for h in last])

    def alone(self, inputs: np.ndarray) -> Any:
        """The op of all of these."""
        xs = [eb.input(x) for x in inputs.reshape(-1, inputs.shape[-1])]
        return eb.forward([self.op(x, x, 1) for x in xs])


def ways(name: str, inputs: np.ndarray) -> dict[str, Callable[[], None]]:
    """What is timed of an op."""
    cell = Recurrent(name, inputs.shape[-1])

    def forward() -> None:
        with eb.Graph(policy="sufficient"), np.errstate(all="ignore"):
            cell.forward(inputs).value()

    def training() -> None:
        with eb.Graph(policy="sufficient"), np.errstate(all="ignore"):
            cell.forward(inputs).backward()
        cell.model.zero_grad()

    def alone() -> None:
        with eb.Graph(policy="sufficient"), np.errstate(all="ignore"):
            cell.alone(inputs)

    return {f"forward {name}": forward, f"training {name}": training, f"alone {name}": alone}


def row(name: str, runs: dict[str, Runs]) -> dict[str, Any]:
    """What is said of an op."""
    ways = ("forward", "training", "alone")
    ms = {way: {x: 1e3 * min(runs[f"{way} {x}"].cpu) for x in (name, "tanh")} for way in ways}
    more = max(0.0, ms["alone"][name] - ms["alone"]["tanh"])
    ratio = ms["forward"][name] / ms["forward"]["tanh"]
    allowed = max(ASKED, ASKED * (1 + more / ms["forward"]["tanh"]))
    return {
        "op": name,
        "forward / tanh": ratio,
        "training / tanh": ms["training"][name] / ms["training"]["tanh"],
        "alone / tanh": ms["alone"][name] / ms["alone"]["tanh"],
        "ms": ms["forward"][name],
        "within": ratio <= allowed,
    }


def tables(options: argparse.Namespace) -> Tables:
    """All ops of the table."""
    random = np.random.default_rng(0)
    (hidden,), (batch,), (steps,) = options.hidden, options.batch, options.steps
    inputs = random.uniform(0.1, 0.9, (batch, steps, hidden)).astype(np.float32)
    names = ["tanh", *(name for name in options.op or computing() if name != "tanh")]
    functions = {way: function for name in names for way, function in ways(name, inputs).items()}
    runs = interleaved(functions, options.rounds)
    return {"An op in the place of tanh": [row(name, runs) for name in names]}


def computing() -> list[str]:
    """The ops of the table that are no sources."""
    return [op.name for op in OPS.values() if op.kind is not Kind.SOURCE]


OP = {"nargs": "+", "choices": sorted(USES), "help": "beside tanh; default: all"}
main = command(__doc__, tables, rounds=7, hidden=(128,), batch=(32,), steps=(20,), op=OP)

if __name__ == "__main__":
    main()
