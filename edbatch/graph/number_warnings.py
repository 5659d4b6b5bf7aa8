"""Warnings about numbers: part of a type, but other ones in every mini-batch; or read of a graph that they are in."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from operator import neg
from typing import Any

from edbatch.errors import goes_on, warn
from edbatch.graph.columns import Columns
from edbatch.graph.op import Op
from edbatch.graph.views import NODE_MASK

#: How many different numbers an op may be given for one attribute, or a cell by keyword, until it is said: each of a
#: dozen layers may have one, and in a graph that has more it is said while it is recorded, before any is compiled.
MANY = 13


def note_numbers(graph: Columns, op: Op, attributes: dict[str, Any]) -> None:
    """Count the numbers that make types of an op which users record; one of very many warns, once.

    Each type has kernels of its own. An annealed slope, margin or rate therefore has some compiled in every mini-batch,
    while a number that is an operand costs nothing. Cells, which are traced anew for each, say so themselves.
    """
    if graph.inlines:
        return
    for name, value in attributes.items():
        if value.__class__ is float and goes_on((op, name), value, MANY):
            warn(
                f"{op.name}: {name} has been {MANY} different numbers. Each makes another type of node, with kernels "
                "of its own that take about a tenth of a second to compile. Give a number that changes as an operand "
                "(x ** eb.scalar(p), or with +, *, maximum, minimum and where), or take only a few of its values"
            )


#: How many numbers a graph remembers, at most.
MOST = 64

_FUNCTIONS: tuple[Callable[[float], float], ...] = (
    math.exp, math.log, math.sqrt, math.tanh, math.sin, math.cos, math.tan, math.erf, math.log1p, math.expm1,
    math.log2, math.log10, math.fabs, math.atan, math.sinh, math.cosh, neg,
)  # fmt: skip


def note_read(read: dict[float, int], value: float, n: int) -> None:
    """Remember a number that is read when a graph has `n` nodes."""
    if len(read) < MOST:
        read.setdefault(value, n)


def tell_read(read: Mapping[float, int], constants: Mapping[Any, tuple[int, Any]]) -> None:
    """Warn, once, where a number that was read, or a function of `math` of it, has become a constant later."""
    first = min(read.values())
    nodes = {key: id & NODE_MASK for key, (id, _) in constants.items() if key.__class__ is float}
    late = {value: node for value, node in nodes.items() if node >= first}
    if not late:
        return
    for value, n in read.items():
        for shown, found in () if _is_round(value) else _made_of(value):
            if late.get(found, -1) >= n and not _is_round(found) and goes_on(tell_read):
                warn(
                    f"backward: {shown} is a constant of this graph: no gradient flows back through a number that was "
                    "read. Expected functions of edbatch (eb.exp(x), not math.exp(x)) and x itself instead of "
                    "float(x); if the gradient is meant to end there, eb.stop_gradient(x) and x.value() say so"
                )


def _made_of(value: float) -> list[tuple[str, float]]:
    """The number and what functions make of it, with what computes that."""
    found = [(f"float(x) = {value:.6g}", value)]
    for function in _FUNCTIONS:
        try:
            made = function(value)
        except (ValueError, OverflowError):
            continue
        name = "-float(x)" if function is neg else f"math.{function.__name__}(x)"
        found.append((f"{name} = {made:.6g} of x = {value:.6g}", made))
    return found


def _is_round(value: float) -> bool:
    """Whether a number of a program may be this one by chance: it has up to three digits, or is none."""
    return not math.isfinite(value) or float(f"{value:.3g}") == value
