"""Samples and answers as JSON: what cannot be read or written is said in one line."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from edbatch.graph.columns import Columns
from edbatch.graph.expression import Expression
from edbatch.serving.errors import BatcherError, RequestError

_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)  # one that does not end: to the end, or it takes quadratic time


def reading(program: Callable[[Any], Any], depth: int) -> Callable[[bytes], Any]:
    """A program that gets its sample as JSON of some depth: what waits is bytes, which take less memory."""
    return lambda body: program(sample_of(body, depth))


def sample_of(body: bytes, depth: int) -> Any:
    """What the body of a request says; a `RequestError` if it is no JSON, no UTF-8, or nested too deeply.

    Example:
        >>> sample_of(b'[3, {"word": null}]', depth=2)
        [3, {'word': None}]
        >>> sample_of(b"[[[]]]", depth=2)
        Traceback (most recent call last):
        edbatch.serving.errors.RequestError: expected JSON of 2 levels at most (see --depth-limit), got 3
    """
    if not body.strip():
        raise RequestError("expected JSON, got an empty body")
    if (found := _depth(body, depth)) > depth:
        raise RequestError(f"expected JSON of {depth} levels at most (see --depth-limit), got {found}")
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(f"expected JSON: {error}") from None


def _depth(body: bytes, enough: int) -> int:
    """How deeply lists and objects are nested; 0 where there are too few of them to tell."""
    if body.count(b"[") + body.count(b"{") <= enough:
        return 0
    found = np.frombuffer(_TEXT.sub(b"", body), np.uint8) | 32  # one bit is all that [ and {, ] and } differ in
    return int(((found == ord("{")).astype(np.int8) - (found == ord("}"))).cumsum(dtype=np.int32).max(initial=0))


def written(answer: Any) -> bytes:
    """An answer as JSON; NumPy's arrays as lists. A `BatcherError` says what JSON does not know: objects, NaN, cycles.

    Example:
        >>> written({"found": np.arange(3)})
        b'{"found":[0,1,2]}'
        >>> written({"found": [1, math.nan]})
        Traceback (most recent call last):
        edbatch.serving.errors.BatcherError: the program returned nan at ['found'][1]; expected finite numbers
    """
    try:
        found = msgspec.json.encode(answer, enc_hook=_plain)
        if b"null" in found and (place := _missing(msgspec.to_builtins(answer, enc_hook=_plain))):
            raise BatcherError(f"the program returned {place}; expected finite numbers")
    except BatcherError:
        raise
    except RecursionError:
        raise BatcherError(
            "the program returned a value that is nested too deeply for JSON, or contains itself"
        ) from None
    except Exception as error:  # objects may do anything when they are looked at
        raise BatcherError(f"the program returned a value that JSON cannot represent: {error}") from None
    return found


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as JSON has them."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Expression | Columns):  # in Python, an expression is written field by field, its graph first
        raise BatcherError("the program returned an expression; expected values: return `await x`")
    name = type(value).__name__
    raise BatcherError(f"the program returned a value of class {name}; expected numbers, texts, lists")


def _missing(value: Any) -> str:
    """The first number that was written as null, as JSON has no other word for it, and where it is; or nothing."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else ()
    for key, item in items:
        if found := _missing(item):
            number, _, place = found.partition(" at ")
            return f"{number} at [{key!r}]{place}"
    return ""
