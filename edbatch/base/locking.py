"""Threads and interrupts: what graphs share is changed by one thread at a time, and never by half.

There is one lock for all types, windows, programs, policies and gradients of a process, held by whoever changes one,
and by whoever runs a graph: compiled loops hold Python's own lock anyway, and locks for each table would have to be
taken in one order, also by the garbage collector. Recording a graph takes it for what is new only.

An interrupt (Ctrl-C, a timer's) may come between any two calls. What must not be left half done then - an update of the
parameters, gradients added to them - makes it wait.
"""

from __future__ import annotations

import _thread
import ctypes
import os
import sys
import threading
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from types import FrameType
from typing import Any, ParamSpec, Self, TypeVar

from edbatch.base.context_stack import leaving
from edbatch.errors import EdBatchError

if not getattr(sys, "_is_gil_enabled", lambda: True)():  # since Python 3.13; recording takes no lock of ours
    raise ImportError(
        "edbatch needs Python's global interpreter lock (GIL), and this free-threaded Python runs without it; expected "
        "the environment variable PYTHON_GIL=1, `python -X gil=1`, or a Python with the lock"
    )

# What `signal` wraps: its functions turn numbers into enums and back, which takes ten times as long as they do.
_signal: Any = import_module("_signal")
# Those that programs catch to end what runs: Ctrl-C, a timer, a batch system that takes the machine back.
_NAMES = ("SIGINT", "SIGTERM", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGHUP", "SIGQUIT", "SIGVTALRM", "SIGPROF", "SIGBREAK")
_SIGNALS = [int(getattr(_signal, name)) for name in _NAMES if hasattr(_signal, name)]

P = ParamSpec("P")
R = TypeVar("R")

#: One that its thread may take again: a policy that is asked for a schedule may run a graph of its own.
lock = threading.RLock()

if hasattr(os, "register_at_fork"):  # a child has one thread: what another held or changed there would stay so
    os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)

# Held by what runs; its own thread finds it so where a signal's handler, or a finalizer, begins something in its midst.
_running = threading.Lock()


def synchronized(function: Callable[P, R]) -> Callable[P, R]:
    """Have a function run by one thread at a time, and by none in its own midst.

    Python runs handlers of signals between any two instructions, and finalizers of what is collected as garbage. What
    these ask for while tables are half changed is refused, and their error is theirs.
    """

    @wraps(function)
    def alone(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with lock:
                running = _running
                if running.locked():
                    raise EdBatchError(
                        "a signal's handler or a finalizer asked for a value, a gradient or an update while EdBatch "
                        "was computing; ask for it later"
                    )
                with running:
                    return function(*args, **kwargs)
        except SystemError as error:
            raise original(error)  # noqa: B904 (it has no other cause)

    return alone


class allow_reentry:
    """A block in which functions of the user's run while something runs: these may well begin something.

    Example:
        >>> read = synchronized(lambda: 1)
        >>> def asking():
        ...     with allow_reentry():
        ...         return read()
        >>> synchronized(asking)()
        1
    """

    __slots__ = ("_outer",)

    def __enter__(self) -> Self:
        global _running
        self._outer = _running
        _running = threading.Lock()
        return self

    @leaving
    def __exit__(self, *_: object) -> None:
        global _running
        _running = self._outer


def original(error: BaseException) -> BaseException:
    """Return what was raised, by the handler of an interrupt, while compiled code made its results Python's.

    Numba returns them with the exception set, and Python says so by a `SystemError`; each function that it goes through
    may add another.
    """
    while isinstance(error, SystemError) and error.__cause__ is not None:
        error = error.__cause__
    return error


def raise_soon(kind: type[BaseException]) -> None:
    """Have an exception of a class raised in what this thread does next: where nobody would hear it now."""
    given = ctypes.c_ulong(_thread.get_ident()), ctypes.py_object(kind)
    _thread.start_new_thread(ctypes.pythonapi.PyThreadState_SetAsyncExc, given)  # this thread would raise it at once


class signals_deferred:
    """A block that is left as a whole: what an interrupt or a timer does comes after it.

    Only the main thread gets signals; in others there is nothing to do. Handlers of C, and what ends the process
    without one, are left as they are.

    Example:
        >>> import signal
        >>> try:
        ...     with signals_deferred():
        ...         signal.raise_signal(signal.SIGINT)
        ...         done = True
        ... except KeyboardInterrupt:
        ...     print(done)
        True
    """

    __slots__ = ("_came", "_handlers")

    def __init__(self) -> None:
        self._came: list[int] = []
        self._handlers: list[tuple[int, Any]] = []  # of the signals that wait

    def __enter__(self) -> Self:
        if _thread.get_ident() == threading.main_thread().ident:
            try:
                for number, handler in zip(_SIGNALS, map(_signal.getsignal, _SIGNALS), strict=True):
                    # The default, and to ignore it, are numbers; of C is None.
                    if handler.__class__ is not int and callable(handler):
                        self._handlers.append((number, handler))
                        _signal.signal(number, self._note)
            except BaseException:  # by a signal whose turn had not come
                self._restore()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._handlers:
            self._restore()

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number not in self._came:
            self._came.append(number)

    def _restore(self) -> None:
        """Put the handlers back, and send what came once more: all, whatever a handler that is back raises."""
        try:
            while self._handlers:
                _signal.signal(*self._handlers[-1])
                self._handlers.pop()
            while self._came:
                _signal.raise_signal(self._came.pop(0))
        finally:
            if self._handlers or self._came:
                self._restore()
