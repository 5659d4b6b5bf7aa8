"""Fused element-wise kernels for the CPU: several ops in one loop over the entries, compiled by LLVM."""

from __future__ import annotations

from functools import cache

from edbatch.kernels.machine_code import address_of
from edbatch.kernels.recipe import Language, Recipe, source_in

KERNEL = """
def kernel(n, d, places):
    {places}
    for i in range(n):
{rows}
        for j in range(d):
{body}
"""


FUNCTIONS = frozenset({"abs", "exp", "maximum", "minimum", "sigmoid", "sqrt", "tanh"})  # that a scalar may call

PYTHON = Language(
    kernel=KERNEL,
    place="p{0}, d{0} = floats_at(places[{1}]), places[{2}]",
    between_places="\n    ",
    row="r{0} = i * d{0}",
    value="v{0} = {1}",
    store="{0} = v{1}",
    indents=(8, 12),
    expression=str,
)


def source_of(recipe: Recipe) -> str:
    """The kernel as Python, of which `machine_code` translates it.

    `kernel(n, d, places)` computes n rows of d entries; `places` are pairs of integers: the address of a place's first
    row, and the distance between its rows in entries (0: one row for all).

    Example:
        >>> from edbatch.kernels.recipe import Compute, Load, Store
        >>> steps = (Load(0, 1), Compute("tanh({0})", (0,)), Compute("{0} * {1}", (1, "float32(2.0)")))
        >>> print(source_of(Recipe(2, steps, (Store(2, 1),))).split("places):")[1])
        <BLANKLINE>
            p0, d0 = floats_at(places[0]), places[1]
            p1, d1 = floats_at(places[2]), places[3]
            for i in range(n):
                r0 = i * d0
                r1 = i * d1
                for j in range(d):
                    v0 = p0[r0 + d + j]
                    v1 = tanh(v0)
                    v2 = v1 * float32(2.0)
                    p1[r1 + j] = v2
        <BLANKLINE>
    """
    return source_in(PYTHON, recipe)


@cache
def address(recipe: Recipe) -> int:
    """Of the kernel of a recipe, a C function; compiled once and kept on disk for later processes."""
    return address_of(source_of(recipe))
