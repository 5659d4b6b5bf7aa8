"""Samples and answers as JSON: what cannot be read or written is said in one line."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np

from edbatch.errors import EdBatchError
from edbatch.graph.columns import Columns


def sample_of(body: bytes) -> Any:
    """What the body of a request says.

    Raises:
        EdBatchError: it is no JSON, no UTF-8, or nested too deeply.

    Example:
        >>> sample_of(b'[3, {"word": null}]')
        [3, {'word': None}]
    """
    if not body.strip():
        raise EdBatchError("expected JSON, got an empty body")
    try:
        return msgspec.json.decode(body)
    except UnicodeDecodeError as error:
        raise EdBatchError(f"expected JSON in UTF-8: {error}") from None
    except RecursionError:
        raise EdBatchError("expected JSON that is nested less deeply") from None
    except msgspec.MsgspecError as error:
        raise EdBatchError(f"expected JSON: {error}") from None


def written(answer: Any) -> bytes:
    """An answer as JSON; NumPy's numbers and arrays as numbers and lists.

    Raises:
        EdBatchError: JSON does not know it: an object, NaN or an infinity, text that is no Unicode, a cycle.

    Example:
        >>> written({"found": np.arange(3)})
        b'{"found":[0,1,2]}'
        >>> written({"found": [1, math.nan]})
        Traceback (most recent call last):
        edbatch.errors.EdBatchError: the program returned nan at ['found'][1]; expected numbers that JSON has
    """
    try:
        found = msgspec.json.encode(answer, enc_hook=_plain)
        if b"null" in found and (place := _missing(msgspec.to_builtins(answer, enc_hook=_plain))):
            raise EdBatchError(f"the program returned {place}; expected numbers that JSON has")
    except EdBatchError:
        raise
    except RecursionError:
        raise EdBatchError("the program returned what is nested too deeply for JSON, or holds itself") from None
    except Exception as error:  # objects may do anything when they are looked at
        raise EdBatchError(f"the program returned what JSON does not know: {error}") from None
    return found


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as JSON has them."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Columns):  # an expression is written field by field, this one first
        raise EdBatchError("the program returned what holds an expression; expected values, `await x` gives one")
    raise EdBatchError(
        f"the program returned what JSON does not know, {type(value).__name__}; expected numbers, texts, lists"
    )


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
