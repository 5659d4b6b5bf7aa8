"""Operators that Python has, and expressions and parameters have not: what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from edbatch.errors import MissingOperatorError

#: What to do where the body of a cell decides by an argument.
KEYWORD_ONLY = (
    "what decides what the cell computes must be a keyword-only parameter, as s is of `def c(x, *, s=...)`, given by "
    "keyword: c(x, s=...)"
)

_ROUNDED = "rounding has no gradient: expected /, or numbers and arrays that are computed of .value()"
_BITS = "there are no integers in a graph: expected numbers and arrays computed of .value(), or * and + of comparisons"
_WRITTEN = "its entries cannot be set: expected eb.concatenate or eb.stack of its parts, or, of a parameter, set_value"

_ROUNDING = {"floordiv": "//", "mod": "%", "divmod": "divmod"}
_OF_BITS = {"and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>"}

#: Per method of Python that is missing, the operator, and what to do instead.
MISSING: dict[str, tuple[str, str]] = {
    **{f"__{side}{name}__": (sign, _ROUNDED) for name, sign in _ROUNDING.items() for side in ("", "r")},
    **{f"__{side}{name}__": (sign, _BITS) for name, sign in _OF_BITS.items() for side in ("", "r")},
    "__invert__": ("~", _BITS),
    "__setitem__": ("x[...] =", _WRITTEN),
    "__delitem__": ("del x[...]", _WRITTEN),
}


def without_operators(kind: type) -> type:
    """Have the operators that a class lacks say what to write instead."""
    for name, (sign, instead) in MISSING.items():
        setattr(kind, name, _refusing(sign, instead))
    return kind


def _refusing(sign: str, instead: str) -> Callable[..., NoReturn]:
    def refuse(self: Any, *_: Any) -> NoReturn:
        raise MissingOperatorError(f"{sign} of {self!r}: {instead}{hint_in_cells(self)}")

    return refuse


def hint_in_cells(value: Any) -> str:
    """The end of an error's text about a decision by a value, where it is an argument of a cell that is traced."""
    return f"; {KEYWORD_ONLY}" if hasattr(getattr(value, "graph", None), "payloads") else ""
