"""Recording: what is done for every node, in C where the extension was built, else in Python, with the same results.

A caller in C knows, for the specs of its operands, the type of the node that a call adds (an inline cache). What it
does not know or expect - a first call, an array, a parameter alone, an expression of another graph - goes to its slow
function, which records the node and has the caller learn it. In Python this function does it all.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import update_wrapper
from typing import TYPE_CHECKING, Any

import numpy as np

from edbatch.base.context_stack import OpenContext
from edbatch.base.extension import extension as _c
from edbatch.base.locking import raise_soon
from edbatch.base.records import packing

#: Whether recording is in C.
IN_C = _c is not None

#: What places blocks in C, see `place`.
place_in_c: Any = _c.place if IN_C else None

#: The class of callers, which are no functions, but know the one that they are called like as `__wrapped__`.
CALLERS: tuple[Any, ...] = (_c.Caller,) if IN_C else ()

#: Of a guard (see `guard.py`) the first step that does not find the same object as before, or -1; in Python, the guard
#: looks itself.
first_change: Callable[[list[Any], list[int], tuple[Any, ...]], int] | None = _c.first_change if IN_C else None

#: The id of an expression: the number of its node, and above so many bits the view it is seen through.
NODE_BITS = 32

# What callers take: one to three operands, arguments, perhaps an integer; one operand that is shown through a view, and
# arguments; a list of one spec; a list of any, and an axis; what a cell takes.
FIXED, VIEW, LIST, PLACE, CELL = range(5)
#: Of a caller in C.
MOST_OPERANDS, MOST_ARGUMENTS = 3, 4


if TYPE_CHECKING or not IN_C:

    class Builder:
        """What of a graph is read and written by recording; see `graph.columns.Columns`."""

        __slots__ = (
            "careful", "constants", "dtype", "expression_class", "integers", "n", "operands", "serial", "types",
        )  # fmt: skip

        careful: bool
        constants: dict[Any, tuple[int, Any]]
        dtype: np.dtype
        expression_class: Any
        integers: Any
        n: int
        operands: Any
        serial: int
        types: Any

        def __del__(self) -> None:
            try:
                self._end()
            except BaseException as error:  # of a signal's handler; Python would say so, and go on
                self._end()
                raise_soon(type(error))

        def _end(self) -> None:
            """Give back what it holds, before it goes."""

        def append(self, types: Sequence[int], operands: Sequence[int], integers: Sequence[int]) -> int:
            """Append nodes; the id of the first."""
            node = self.n
            self.n = node + len(types)
            self.types.extend(types)
            self.operands.extend(operands)
            self.integers.extend(integers)
            return node

    class Handle:
        """A node of a graph, perhaps seen through a view, and its spec."""

        __slots__ = ("graph", "id", "spec")

        def __init__(self, graph: Any, id: int, spec: Any) -> None:
            self.graph, self.id, self.spec = graph, id, spec

else:
    Builder, Handle = _c.Builder, _c.Handle


def new_columns() -> tuple[Any, Any, Any]:
    """Columns of types, operands and integers."""
    return (array("i"), array("q"), array("q")) if IN_C else ([], [], [])


def as_taken(column: Any, code: str) -> np.ndarray:
    """A column as an array that sees it, which nothing is appended to any more; `code`: see `packing`."""
    if isinstance(column, list):
        # Of bytes it could not be written to, and compiled code would be another.
        return np.frombuffer(bytearray(packing(code, len(column)).pack(*column)), np.dtype(code))
    return np.asarray(column)


def connect(parameter: type, top: ContextVar[Any], place: Callable[..., int]) -> None:
    """Say what parameters are, where the open graph is found, and what places blocks in Python."""
    if IN_C:
        _c.connect(parameter, top, vars(OpenContext)["value"], place)


def caller(
    kind: int,
    slow: Callable[..., Any],
    names: tuple[str, ...],
    operands: int = 1,
    has_integer: bool = False,
    defaults: tuple[Any, ...] = (),
) -> Any:
    """A caller, which has `learn(specs, type, out, arguments, view, step, bound)`; in Python it is the slow function,
    and where it takes more operands or arguments than one in C knows.

    Args:
        kind: what it takes.
        slow: what is called with what it does not know; a function of its own.
        names: of all that it takes: so many operands, arguments that are literals (`defaults`: of the last), and
            perhaps an integer of the node.
    """
    if IN_C and operands <= MOST_OPERANDS and len(names) - operands - has_integer <= MOST_ARGUMENTS:
        return update_wrapper(_c.Caller(kind, operands, has_integer, slow, names, defaults), slow)
    found: Any = slow
    found.learn = lambda *_: None
    return found


def cell_caller(slow: Callable[..., Any], *compared: Any) -> Any:
    """The caller of a cell, which has `configure(slow, *compared)`; in Python it is the slow function.

    Args:
        compared: where last calls are kept (None: by the owner), their names by the number of arguments, attributes of
            the owner that are looked at, what stands for one that is missing, and whether there is an owner.
    """
    if not IN_C:
        return slow
    made = _c.Caller(CELL, 1, False, slow, ("x",), ())
    made.configure(slow, *compared)
    return made
