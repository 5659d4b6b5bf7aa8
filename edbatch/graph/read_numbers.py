"""Numbers that `float(x)` and functions of `math` read of a graph, and that came back as constants of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from operator import neg
from typing import Any

from edbatch.errors import goes_on, warn
from edbatch.graph.views import NODE_MASK

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
