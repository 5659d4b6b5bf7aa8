"""The exception and the warning of EdBatch."""

import sys
import warnings
from collections.abc import Callable, Hashable
from types import FrameType
from typing import Any

import numpy as np

# What may stand on the stack between the user's line and ours without being anybody's program.
_INSIDE = frozenset(["edbatch", "numba", "click", "contextlib", "functools", "importlib", "threading", "runpy"])
_counted: dict[Hashable, set[Hashable]] = {}  # see `goes_on`


class EdBatchError(ValueError):
    """Bad input: the message names the place (a call, an operand, a file and line) and what was expected.

    Example:
        >>> import edbatch as eb
        >>> model = eb.ParameterCollection()
        >>> W = model.add_parameters((5, 64), name="W")
        >>> with eb.Graph():
        ...     h = eb.input([1.0, 2.0])
        ...     W @ h
        Traceback (most recent call last):
        edbatch.errors.EdBatchError: matmul(W[5,64], [2]): ...
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(message)


class MissingNameError(EdBatchError, KeyError):
    """There is nothing of such a name: also a `KeyError`, as dictionaries raise."""

    __str__ = Exception.__str__  # not a key's text in quotation marks


class MissingAttributeError(EdBatchError, AttributeError):
    """There is no attribute of such a name, but one that does the same: also an `AttributeError`, as Python raises."""


class MissingOperatorError(EdBatchError, TypeError):
    """An operator, a keyword or a function of NumPy that is not there: also a `TypeError`, as Python raises."""


class MissingMemoryError(EdBatchError, MemoryError):
    """There is no memory for a graph, or for a list: also a `MemoryError`, as Python raises."""


class EdBatchWarning(UserWarning):
    """Something works, but not as well as it could: the message says what is lost and how to get it back."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message)


def missing_memory(place: str, value: Any) -> MissingMemoryError:
    """About a caller's value that lists more than there is memory for.

    Example:
        >>> print(missing_memory("stack", range(10**12)))
        stack: expected what fits into memory, got range(0, 1000000000000)
    """
    return MissingMemoryError(f"{place}: expected what fits into memory, got {shown(value)}")


def users_frame() -> FrameType:
    """The innermost frame that is neither of this package nor of what it is called through; else the outermost."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if str(frame.f_globals.get("__name__")).partition(".")[0] not in _INSIDE:
            return frame
        outermost, frame = frame, frame.f_back
    return outermost


def warn(message: str) -> None:
    """An `EdBatchWarning` that names the line of the user's program that led to it, not one of this package."""
    frame = users_frame()
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    place = frame.f_code.co_filename, frame.f_lineno, frame.f_globals.get("__name__")
    warnings.warn_explicit(message, EdBatchWarning, *place, registry=registry, source=None)


def goes_on(what: Hashable, value: Hashable = None, many: int = 1) -> bool:
    """Count a value of something; True once in a process: when it has had so many different ones.

    Example:
        >>> [goes_on("rate", value, many=2) for value in (0.1, 0.1, 0.2, 0.3)]
        [False, False, True, False]
    """
    known = _counted.setdefault(what, set())
    if len(known) >= many:
        return False
    known.add(value)
    return len(known) == many


class Place:
    """What an error message begins with, written out only when there is one.

    Args:
        text: writes it.
    """

    __slots__ = ("_text",)

    def __init__(self, text: Callable[[], str]) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text()


def checked_flag(place: str, value: Any) -> bool:
    """A switch as a Python bool; 0 and 1 will do, everything else that happens to be true or false will not.

    Example:
        >>> checked_flag("freeze", "no")
        Traceback (most recent call last):
        edbatch.errors.EdBatchError: freeze: expected True or False, got 'no'
    """
    if isinstance(value, int | np.bool_) and value in (0, 1):
        return bool(value)
    raise EdBatchError(f"{place}: expected True or False, got {shown(value)}")


def shown(value: Any) -> str:
    """A caller's value for an error message, whatever it is: cut where it is long, and by its type if it has no text.

    Example:
        >>> shown(2.5), shown(10**5000)
        ('2.5', 'a very large int')
    """
    try:
        text = repr(value)
    except Exception:  # of integers beyond 4,300 digits, say
        return f"a very large {type(value).__name__}" if isinstance(value, int) else f"a {type(value).__name__}"
    return text if len(text) <= 200 else f"{text[:200]}..."
