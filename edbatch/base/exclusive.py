"""Threads and interrupts: what graphs share is changed by one thread at a time, and never by half.

Types, windows, programs, policies, stacks and gradients are shared by all graphs of a process. There is one lock for
all of them, held by whoever changes one, and by whoever runs a graph: compiled loops hold Python's own lock anyway, and
locks for each table would have to be taken in one order, also by the garbage collector. Recording a graph takes it for
what is new only.

An interrupt (Ctrl-C) may come between any two calls. What must not be left half done then - an update of the
parameters, gradients added to them, parameters moved into a stack - makes it wait.
"""

from __future__ import annotations

import _thread
import os
import threading
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from signal import SIGINT
from types import FrameType
from typing import Any, ParamSpec, Self, TypeVar

# What `signal` wraps: its functions turn numbers into enums and back, which takes ten times as long as they do.
_signal: Any = import_module("_signal")
_INTERRUPT = int(SIGINT)

P = ParamSpec("P")
R = TypeVar("R")

#: One that its thread may take again: a policy that is asked for a schedule may run a graph of its own.
lock = threading.RLock()

if hasattr(os, "register_at_fork"):
    # A child of `os.fork` has one thread: what another held there would be held for ever, and what it was changing
    # would stay half changed.
    os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)


def exclusive(function: Callable[P, R]) -> Callable[P, R]:
    """Have a function run by one thread at a time; what compiled code made of an exception becomes that again."""

    @wraps(function)
    def alone(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with lock:
                return function(*args, **kwargs)
        except SystemError as error:
            raise original(error)  # noqa: B904 (it has no other cause)

    return alone


def original(error: BaseException) -> BaseException:
    """What was raised, by the handler of an interrupt, while compiled code made its results Python's.

    Numba returns them with the exception set, and Python says so by a `SystemError`; each function that it goes through
    may add another.
    """
    while isinstance(error, SystemError) and error.__cause__ is not None:
        error = error.__cause__
    return error


class Whole:
    """In its block, interrupts wait: the block is left as a whole, and what the interrupt does comes after it.

    Only the main thread gets interrupts; in others there is nothing to do.

    Args:
        last: whether nothing of Python runs after the block that could raise (a finalizer): the interrupt is then sent
            once more, by another thread, to whatever runs next.

    Example:
        >>> import signal
        >>> try:
        ...     with Whole():
        ...         signal.raise_signal(signal.SIGINT)
        ...         done = True
        ... except KeyboardInterrupt:
        ...     print(done)
        True
    """

    __slots__ = ("_came", "_handler", "_last")

    def __init__(self, last: bool = False) -> None:
        self._last = last
        self._came = False
        self._handler: Any = None

    def __enter__(self) -> Self:
        if _thread.get_ident() == threading.main_thread().ident:
            handler = _signal.getsignal(_INTERRUPT)
            if callable(handler):  # and not ignored, or of C
                self._handler = handler
                _signal.signal(_INTERRUPT, self._note)
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._came = True

    def __exit__(self, *_: object) -> None:
        if self._handler is None:
            return
        _signal.signal(_INTERRUPT, self._handler)
        if self._came and self._last:
            _thread.start_new_thread(_thread.interrupt_main, ())
        elif self._came:
            _signal.raise_signal(_INTERRUPT)
