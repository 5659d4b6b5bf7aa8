"""Fused element-wise kernels: several ops in one loop over the entries, generated from the op table's `scalar`."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from edbatch.errors import EdBatchError
from edbatch.files import write_atomically

HEADER = '''"""Written by EdBatch; may be deleted at any time."""
from numba import cfunc, float32
from edbatch.kernels.pointers import KERNEL, floats_at
from edbatch.kernels.scalars import exp, maximum, minimum, sigmoid, sqrt, tanh


@cfunc(KERNEL, cache=True, error_model="numpy", fastmath={"contract"})
def kernel(n, d, places):
{places}
    for i in range(n):
{rows}
        for j in range(d):
{body}
'''


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
    """One op: `scalar` with operands {0}, {1}, which are positions of earlier instructions or float constants."""

    scalar: str
    operands: tuple[int | float, ...]


@dataclass(frozen=True)
class Store:
    """The value of an instruction, written to `column` (in multiples of d) of a row."""

    value: int
    rows: int
    column: int = 0


@dataclass(frozen=True)
class Recipe:
    """A fused kernel.

    Values that lie in one row are read and written through ONE place, at columns that are multiples of d: what the
    compiler cannot see to lie apart, it checks at run time before it uses vector instructions, and with more than a
    few such places it does not use them at all (measured: 2.5 ns an entry of a TreeLSTM, against 29).

    Args:
        places: how many.
        instructions: loads and computations, operands before users.
        stores: what is written.
    """

    places: int
    instructions: tuple[Load | Compute, ...]
    stores: tuple[Store, ...]


def source_of(recipe: Recipe) -> str:
    """The kernel as Python for Numba.

    `kernel(n, d, places)` computes n rows of d entries; `places` are pairs of integers: the address of a place's first
    row, and the distance between its rows in entries (0: one row for all).

    Example:
        >>> steps = (Load(0, 1), Compute("tanh({0})", (0,)), Compute("{0} * {1}", (1, 2.0)))
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
    numbers = range(recipe.places)
    places = [f"p{at}, d{at} = floats_at(places[{2 * at}]), places[{2 * at + 1}]" for at in numbers]
    rows = [f"r{at} = i * d{at}" for at in numbers]
    body = []
    for number, step in enumerate(recipe.instructions):
        if isinstance(step, Compute):
            operands = [f"v{x}" if isinstance(x, int) else f"float32({x!r})" for x in step.operands]
            body.append(f"v{number} = {step.scalar.format(*operands)}")
        elif step.column is None:
            rows.append(f"v{number} = p{step.rows}[r{step.rows}]")
        else:
            body.append(f"v{number} = p{step.rows}[{_entry(step.rows, step.column)}]")
    body += [f"p{store.rows}[{_entry(store.rows, store.column)}] = v{store.value}" for store in recipe.stores]
    return (
        HEADER.replace("{places}", "\n".join(" " * 4 + line for line in places))
        .replace("{rows}", "\n".join(" " * 8 + line for line in rows))
        .replace("{body}", "\n".join(" " * 12 + line for line in body))
    )


def _entry(rows: int, column: int) -> str:
    return f"r{rows} + j" if column == 0 else f"r{rows} + d + j" if column == 1 else f"r{rows} + {column} * d + j"


def cache_folder() -> Path:
    """Where generated kernels and their compiled code are kept: `edbatch` in the user's cache folder."""
    root = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return Path(root or Path.home() / ".cache") / "edbatch" / "kernels"


@cache
def compiled(recipe: Recipe) -> Any:
    """The kernel of a recipe, a C function (`.address`); compiled once and kept on disk for later processes."""
    source = source_of(recipe)
    name = "edbatch_kernel_" + hashlib.sha256(source.encode()).hexdigest()[:20]
    path = cache_folder() / f"{name}.py"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            write_atomically(path, source)
    except (OSError, EdBatchError):  # a home that cannot be written: compile anew in every process
        path = Path(tempfile.mkdtemp(prefix="edbatch-")) / path.name
        write_atomically(path, source)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module.kernel


def with_attributes(scalar: str, attributes: Sequence[tuple[str, Any]]) -> str:
    """An op's scalar expression with its attributes filled in.

    Example:
        >>> with_attributes("{0} if {0} > float32(0) else {slope} * {0}", [("slope", 0.3)])
        '{0} if {0} > float32(0) else float32(0.3) * {0}'
    """
    for name, value in attributes:
        scalar = scalar.replace(f"{{{name}}}", f"float32({float(value)!r})")
    return scalar
