"""Fused element-wise kernels as data, and the one walk that writes them out in any language."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Load:
    """An operand from outside.

    Args:
        rows: which of the kernel's places it is read from.
        column: where in a row, in multiples of d; None for a single number a row.
    """

    rows: int
    column: int | None = 0


@dataclass(frozen=True)
class Compute:
    """One op: `scalar` with operands {0}, {1}, which are positions of earlier instructions, or constants as written.

    A constant is text (see `constant`): recipes are keys, in which a number 2.0 would be equal to position 2,
    and 0.0 to -0.0.
    """

    scalar: str
    operands: tuple[int | str, ...]


@dataclass(frozen=True)
class Store:
    """The value of an instruction, written to `column` (in multiples of d) of a row."""

    value: int
    rows: int
    column: int = 0


@dataclass(frozen=True)
class Recipe:
    """A fused kernel: n rows of d entries are computed, each entry by itself.

    Values that lie in one row are read and written through ONE place, at columns that are multiples of d: what the
    compiler cannot see to lie apart, it checks at run time before it uses vector instructions (see `compiled`).

    Args:
        places: how many; each the address of a first row of float32, and the distance between rows in entries (0: one
            row for all).
        instructions: loads and computations, operands before users.
        stores: what is written.
    """

    places: int
    instructions: tuple[Load | Compute, ...]
    stores: tuple[Store, ...]


@dataclass(frozen=True)
class Language:
    """How a language spells a kernel.

    Args:
        kernel: all of it, around {places}, the lines {rows} that run once a row i, and the lines {body} that run once
            an entry j.
        place: gets place {0}, its first row p{0} and distance d{0}, which are numbers {1} and {2} of what is passed.
        between_places: what joins these.
        row: defines r{0}, where row i of a place begins.
        value: defines v{0}, the value of an instruction, as {1}.
        store: writes v{1} to the entry {0}.
        indents: of the lines {rows} and {body}.
        expression: from a `scalar` with its operands in place to the language's own.
    """

    kernel: str
    place: str
    between_places: str
    row: str
    value: str
    store: str
    indents: tuple[int, int]
    expression: Callable[[str], str]


def source_in(language: Language, recipe: Recipe) -> str:
    """The kernel's source: `kernel(n, d, ...)`, computing n rows of d entries, and two things passed for each place."""

    def entry(rows: int, column: int) -> str:
        before = "" if column == 0 else "d + " if column == 1 else f"{column} * d + "
        return f"p{rows}[r{rows} + {before}j]"

    numbers = range(recipe.places)
    places = [language.place.format(at, 2 * at, 2 * at + 1) for at in numbers]
    rows = [language.row.format(at) for at in numbers]
    body = []
    for number, step in enumerate(recipe.instructions):
        if isinstance(step, Compute):
            operands = [f"v{x}" if isinstance(x, int) else x for x in step.operands]
            expression = language.expression(step.scalar.format(*operands))
            body.append(language.value.format(number, expression))
        elif step.column is None:
            rows.append(language.value.format(number, f"p{step.rows}[r{step.rows}]"))
        else:
            body.append(language.value.format(number, entry(step.rows, step.column)))
    body += [language.store.format(entry(store.rows, store.column), store.value) for store in recipe.stores]
    text = language.kernel.replace("{places}", language.between_places.join(places))
    for name, indent, lines in zip(("{rows}", "{body}"), language.indents, (rows, body), strict=True):
        text = text.replace(name, "\n".join(" " * indent + line for line in lines))
    return text


def constant(value: float) -> str:
    """A number in a scalar expression, rounded to float32; infinities and NaN have no literal of their own.

    Example:
        >>> constant(0.3), constant(float("-inf"))
        ('float32(0.3)', 'float32(-1e999)')
    """
    if math.isnan(value):
        return "(float32(1e999) - float32(1e999))"
    return f"float32({value!r})".replace("inf", "1e999")


def with_attributes(scalar: str, attributes: Sequence[tuple[str, Any]]) -> str:
    """An op's scalar expression with its attributes filled in.

    Example:
        >>> with_attributes("{0} if {0} > float32(0) else {slope} * {0}", [("slope", 0.3)])
        '{0} if {0} > float32(0) else float32(0.3) * {0}'
    """
    for name, value in attributes:
        scalar = scalar.replace(f"{{{name}}}", constant(float(value)))
    return scalar
