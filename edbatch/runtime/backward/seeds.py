"""The gradients that a backward pass is given: of its roots, as a caller gives them, and where they go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from edbatch.errors import EdBatchError, shown
from edbatch.graph.expression_array import ExpressionArray
from edbatch.graph.model.exchange import from_dlpack
from edbatch.graph.spec import Spec
from edbatch.graph.views import NODE_BITS, NODE_MASK
from edbatch.memory.plan.arenas import GradientRows
from edbatch.memory.plan.windows import GRADIENT
from edbatch.runtime.backward.live_outputs import stopping_views

if TYPE_CHECKING:
    from edbatch.runtime.evaluation import Evaluation

_ONES = {np.dtype(name): np.ones(1, name) for name in ("float32", "float64")}


def seed_of(place: str, spec: Spec, gradient: Any, *count: int) -> np.ndarray:
    """The gradient [n, *shape] that a caller gave for an expression, or for an array of so many, or 1 for scalars.

    Raises:
        EdBatchError: it has another shape than the expression, or there is none and the expression is no scalar.
    """
    if gradient is None:
        if spec.shape:
            raise EdBatchError(
                f"{place} of an expression of shape {spec.shape}: expected a scalar, or its gradient as an argument"
            )
        return np.ones(count, spec.dtype) if count else _ONES[spec.dtype]
    shape, seed = (*count, *spec.shape), np.array(from_dlpack(gradient, f"{place}: the gradient"), spec.dtype)
    if seed.shape != shape:
        raise EdBatchError(f"{place}: expected a gradient of shape {shape}, got {seed.shape}")
    return seed if count else seed[None]


def roots_of(
    place: str, outputs: Sequence[Any], gradients: Any, check: Callable[[str, Any], None]
) -> tuple[list[int], list[np.ndarray]]:
    """The roots of a backward pass and their gradients, see `Backward`: those of one spec side by side.

    Args:
        place: what error messages begin with.
        outputs, gradients: see `edbatch.backward`.
        check: called with a place and an output, has it be of the graph.
    """
    try:
        given = [None] * len(outputs) if gradients is None else list(gradients)
    except TypeError:
        raise EdBatchError(f"{place}: expected a list of gradients, got {shown(gradients)}") from None
    if len(given) != len(outputs):
        raise EdBatchError(f"{place}: expected {len(outputs)} gradients, one for each output, got {len(given)}")
    groups: dict[Spec, tuple[list[int], list[np.ndarray]]] = {}
    for at, (x, gradient) in enumerate(zip(outputs, given, strict=True)):
        check(f"{place}: output {at}", x)
        if gradient is None and gradients is not None:
            continue
        is_array = isinstance(x, ExpressionArray)
        seed = seed_of(place, x.spec, gradient, *([len(x)] if is_array else []))
        if len(seed):
            roots, seeds = groups.setdefault(x.spec, ([], []))
            roots += x.ids.tolist() if is_array else [x.id]
            seeds.append(seed)
    found = [id for roots, _ in groups.values() for id in roots]
    return found, [np.concatenate(seeds) if len(seeds) > 1 else seeds[0] for _, seeds in groups.values()]


def give_seeds(roots: list[int], seeds: Sequence[np.ndarray], graph: Evaluation, gradients: GradientRows) -> None:
    """Put the given gradients where the backward pass begins; several may be of one node."""
    backend, table, nodes = graph.table.backend, graph.table, graph.nodes
    if len(roots) == 1 and roots[0] <= NODE_MASK:
        seed, root = seeds[0][0], roots[0]
        # One number goes along with a kernel that fills in; several would be copied to a GPU.
        given = backend.from_host(seed, "C").reshape(-1) if seed.ndim else seed
        arena = table.facts.tables.arenas.item(nodes.types.item(root)) + GRADIENT
        gradients.flat(arena, nodes.row.item(root), 1)[...] = given
        return
    ids, end = np.array(roots, np.int64), 0
    stops = stopping_views()[ids >> NODE_BITS]
    for some in seeds:
        begin, end = end, end + len(some)
        for chosen, window, rows in table.by_window(ids[begin:end], nodes):
            if stops[begin + chosen[0]]:
                continue
            given, array = backend.from_host(some[chosen], "C"), gradients.of(window)
            first, n = int(rows[0]), len(rows)
            if (rows == np.arange(first, first + n)).all():  # takes a quarter of the time
                array[first : first + n] += given
                continue
            found, total = backend.sum_equal(rows, given.reshape(n, given[0].size))
            array[backend.from_host(found)] += total.reshape(len(found), *array.shape[1:])
