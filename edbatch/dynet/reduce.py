"""Sums, means, moments and largest entries: over all entries, axes, lists, and mini-batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import edbatch as eb
from edbatch.dynet.arithmetic import multiply, subtract
from edbatch.dynet.checked import named
from edbatch.dynet.expression import count, node
from edbatch.errors import EdBatchError
from edbatch.graph.expression_array import ExpressionArray


def _alike(xs: Sequence[Any]) -> list[Any]:
    """Expressions as the first is: numbers with an axis, columns with one or two, single ones in mini-batches."""
    shape = xs[0].spec.shape or (1,)
    n = max(len(x.spec.shape) for x in xs)
    found = {(*x.spec.shape, *(1,) * (n - len(x.spec.shape))) for x in xs}
    if len(found) > 1:
        raise EdBatchError(f"Mismatched input dimensions: {sorted(found)}")
    return spread([x if x.spec.shape == shape else eb.reshape(x, shape) for x in xs])


def spread(xs: list[Any]) -> list[Any]:
    """Single expressions as mini-batches, if some are mini-batches."""
    graph = next((x.graph for x in xs if isinstance(x, ExpressionArray)), None)
    return xs if graph is None else [x if isinstance(x, ExpressionArray) else graph.placed(node(x)) for x in xs]


def _of_list(call: Callable[[list[Any]], Any]) -> Callable[[Sequence[Any]], Any]:
    """A function of a list, which may hold numbers with an axis and without, and mini-batches."""

    def listed(xs: Sequence[Any]) -> Any:
        xs = xs if isinstance(xs, list) else list(xs)
        graph, spec = xs[0].graph, xs[0].spec
        for x in xs:
            if x.graph is not graph or x.spec is not spec:
                return call(_alike(xs))
        return call(xs)

    return listed


def _along(call: Callable[[Any, int], Any]) -> Callable[..., Any]:
    """A function of an axis; numbers have none."""
    return lambda x, d=0: call(x, int(d)) if x.spec.shape else x


def _axes(x: Any) -> tuple[int, ...]:
    return tuple(range(len(x.spec.shape)))


def sum_elems(x: Any) -> Any:
    """Sum of all entries."""
    return eb.sum(x, _axes(x)) if x.spec.shape else x


def _mean_elems(x: Any) -> Any:
    return eb.multiply(sum_elems(x), 1.0 / x.spec.size)


def _sum_batches(x: Any) -> Any:
    return eb.sum(x) if isinstance(x, ExpressionArray) else x


def _mean_batches(x: Any) -> Any:
    return eb.multiply(_sum_batches(x), 1.0 / count(x))


def _sum_dim(x: Any, d: Sequence[int], b: bool = False, n: int = 0) -> Any:
    found = eb.sum(x, tuple(d)) if len(d) and x.spec.shape else x
    return _sum_batches(found) if b else found


def _mean_dim(x: Any, d: Sequence[int], b: bool, n: int = 0) -> Any:
    size = n or float(np.prod([x.spec.shape[axis] for axis in d if x.spec.shape])) * (count(x) if b else 1)
    return eb.multiply(_sum_dim(x, d, b), 1.0 / size)


def _std_dim(x: Any, d: Sequence[int], b: bool, n: int = 0) -> Any:
    kept = tuple(1 if axis in d else size for axis, size in enumerate(x.spec.shape))
    mean = eb.reshape(_mean_dim(x, d, b), kept)
    return eb.sqrt(_mean_dim(eb.square(subtract(x, mean)), d, b))


def _std(mean: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: eb.sqrt(mean(eb.square(subtract(x, mean(x)))))


_OVER = "over axes, and, if `b`, over the mini-batch"
#: By DyNet's name.
TABLE = named(
    esum=(_of_list(lambda xs: eb.sum(xs)), "Sum of a list."),
    average=(_of_list(lambda xs: eb.multiply(eb.sum(xs), 1.0 / len(xs))), "Mean of a list."),
    emax=(_of_list(lambda xs: eb.maximum(xs)), "Entry by entry the largest of a list."),
    logsumexp=(_of_list(lambda xs: eb.logsumexp(xs)), "Entry by entry log Σ eˣ of a list."),
    sum_elems=(sum_elems, "Sum of all entries."),
    mean_elems=(_mean_elems, "Mean of all entries."),
    moment_elems=(lambda x, r: _mean_elems(eb.power(x, int(r))), "Mean of the r-th powers of all entries."),
    std_elems=(_std(_mean_elems), "Standard deviation of all entries."),
    sum_batches=(_sum_batches, "Sum over a mini-batch."),
    mean_batches=(_mean_batches, "Mean over a mini-batch."),
    moment_batches=(lambda x, r: _mean_batches(eb.power(x, int(r))), "Mean of r-th powers over a mini-batch."),
    std_batches=(_std(_mean_batches), "Standard deviation over a mini-batch."),
    sum_dim=(_sum_dim, f"Sum {_OVER}; `n` is no matter, as in DyNet."),
    mean_dim=(_mean_dim, f"Mean {_OVER}; `n`: what the sum is divided by instead."),
    moment_dim=(lambda x, d, r, b, n=0: _mean_dim(eb.power(x, int(r)), d, b, n), f"Mean of the r-th powers {_OVER}."),
    std_dim=(_std_dim, f"Standard deviation {_OVER}; `n` is no matter, as in DyNet."),
    max_dim=(_along(eb.max), "Largest entries along an axis."),
    logsumexp_dim=(_along(eb.logsumexp), "log Σ eˣ along an axis."),
    cumsum=(_along(eb.cumsum), "Sums of all entries up to each, along an axis."),
    squared_norm=(lambda x: sum_elems(eb.square(x)), "Σ x²."),
    l2_norm=(lambda x: eb.norm(x, _axes(x)), "√Σ x²."),
    dot_product=(lambda x, y: sum_elems(multiply(x, y)), "Σ x y."),
    trace_of_product=(lambda x, y: sum_elems(multiply(x, y)), "Trace of x yᵀ."),
)  # fmt: skip
