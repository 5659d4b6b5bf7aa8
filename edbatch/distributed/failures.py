"""Errors of the caller's code, here and in workers: one `EdBatchError` that names the place, with its cause."""

from __future__ import annotations

import os
import pickle
import traceback
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from edbatch.base.later import Later
from edbatch.errors import EdBatchError

cloudpickle = Later("ray.cloudpickle")
resource = Later("resource")


# What a function of the caller's raises in a worker: there nobody presses Ctrl-C, and to exit is to be lost.
RAISED = (Exception, KeyboardInterrupt, SystemExit)


def failed(place: str, error: BaseException) -> EdBatchError:
    """What to raise from an error.

    Example:
        >>> print(failed("train: losses of sample 3", KeyError("a word")))
        train: losses of sample 3: KeyError: 'a word'
    """
    what = str(error)
    if not isinstance(error, EdBatchError):
        what = f"{type(error).__name__}: {error}" if what else type(error).__name__
    if isinstance(error, MemoryError):
        what += f"; process {os.getpid()} was out of memory{_used()}"
    return EdBatchError(f"{place}: {what}")


def to_send(found: EdBatchError, error: BaseException | None) -> EdBatchError:
    """Have an error tell another process its cause: its traceback as a note, and as `raised` where it can be sent."""
    if error is not None:
        found.add_note("".join(traceback.format_exception(error)))
        with suppress(Exception):
            found.raised = pickle.loads(pickle.dumps(error))  # type: ignore[attr-defined]
    return found


def unsendable(place: str, named: Iterable[tuple[str, Any]], error: Exception) -> EdBatchError:
    """What to raise where things by name cannot be sent, which gave an error: it names the first that cannot.

    Example:
        >>> print(unsendable("map", [], TypeError("no\\nreason")))
        map: a worker cannot be told what to do (TypeError: no)
    """
    for name, thing in named:
        try:
            cloudpickle.dumps(thing)
        except Exception as found:
            return EdBatchError(f"{place}: {name} cannot be pickled, to be sent ({_line(found)})")
    return EdBatchError(f"{place}: a worker cannot be told what to do ({_line(error)})")


def _line(error: Exception) -> str:
    lines = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"


def _used() -> str:
    try:
        return f", with {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10:,.0f} MiB"
    except ImportError:  # on Windows
        return ""
