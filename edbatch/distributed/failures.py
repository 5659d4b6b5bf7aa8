"""Errors of the caller's code, here and in workers: one `EdBatchError` that names the place, with its cause."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from edbatch.base.lazy import LazyModule
from edbatch.errors import EdBatchError

cloudpickle = LazyModule("ray.cloudpickle")
P = ParamSpec("P")
R = TypeVar("R")

# What a function of the caller's raises in a worker: there nobody presses Ctrl-C, and to exit is to be lost.
RAISED = (Exception, KeyboardInterrupt, SystemExit)


def failed(place: str, error: BaseException) -> EdBatchError:
    """What to raise from an error.

    Example:
        >>> print(failed("train: losses of sample 3", KeyError("a word")))
        train: losses of sample 3: KeyError: 'a word'
    """
    return EdBatchError(f"{place}: {_described(error)}")


def unreadable(place: str, number: int, error: Exception) -> EdBatchError:
    """What to raise where a sample cannot be read."""
    found = EdBatchError(f"{place}: sample {number} cannot be read ({_described(error)})")
    found.__cause__ = error
    return found


def made_again(place: str, job: bytes) -> Any:
    """What a worker got, or an `EdBatchError` where it cannot be made here."""
    try:
        return pickle.loads(job)
    except Exception as error:
        place = f"{place}: what is sent, made again in a worker (which needs the same modules)"
        raise failed(place, error) from error


def for_another_process(method: Callable[P, R]) -> Callable[P, R]:
    """Have errors of a worker tell their cause: its traceback as a note, and as `raised` where it can be sent."""

    @wraps(method)
    def told(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except EdBatchError as error:
            if (cause := error.__cause__) is not None:
                error.add_note("".join(traceback.format_exception(cause)))
                with suppress(Exception):
                    error.raised = pickle.loads(pickle.dumps(cause))  # type: ignore[attr-defined]
            raise error from None

    return told


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
            return EdBatchError(f"{place}: {name} cannot be pickled, to be sent ({_described(found).splitlines()[0]})")
    return EdBatchError(f"{place}: a worker cannot be told what to do ({_described(error).splitlines()[0]})")


def _described(error: BaseException) -> str:
    if isinstance(error, EdBatchError):
        return str(error)
    return f"{type(error).__name__}: {error}".removesuffix(": ")
