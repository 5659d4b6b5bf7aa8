"""What users see of compilation: a bar on a terminal, one line elsewhere."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from edbatch.base.later import Later
from edbatch.compiling.cache import cache_folder, works
from edbatch.compiling.fingerprint import callees

tqdm = Later("tqdm")

# What is expected to take longer, in seconds, is announced; compiling a function takes about so many.
LONG = 2.5
SECONDS = 0.3


class _Thread(threading.local):
    inside = False  # a compilation
    bar: Any = None  # of it


_thread = _Thread()
_said = threading.Event()


@contextmanager
def shown(function: Any) -> Iterator[None]:
    """Around a compiled function's compilation: say that it goes on, and how many functions that it calls are done."""
    if _thread.inside:
        yield
        if _thread.bar is not None:
            _thread.bar.update()
        return
    _thread.inside = True
    try:
        if _is_terminal():
            with _bar(function):
                yield
        else:
            _say_once(function)
            yield
    finally:
        _thread.inside = False


def _is_terminal() -> bool:
    """Whether standard error is one; what a program has put in its place need not tell."""
    return bool(getattr(sys.stderr, "isatty", bool)())


@contextmanager
def _bar(function: Any) -> Iterator[None]:
    text = f"compiling {_name(function)}, once per machine"
    with tqdm.tqdm(total=_missing(function), desc=text, unit="function", leave=False, delay=0.3) as bar:
        _thread.bar = bar
        try:
            yield
        finally:
            _thread.bar = None


def _say_once(function: Any) -> None:
    """Off a terminal there is no bar, but one line for what takes long."""
    seconds = SECONDS * _missing(function)
    if seconds < LONG:
        return
    what = f"edbatch: compiling {_name(function)} for this"
    about = f"(about {seconds:.0f} s; all that a program needs, up to a minute; longer on a busy machine)"
    kept = f"machine, once {about}; kept in {cache_folder()}" if works() else f"process {about}; not kept"
    say_once(f"{what} {kept}", _said)


def say_once(text: str, said: threading.Event) -> None:
    """Tell the reader of a log why nothing happens for some seconds: once per process, and not among tests' output."""
    if not said.is_set() and sys.stderr is not None and "PYTEST_CURRENT_TEST" not in os.environ:
        said.set()
        print(text, file=sys.stderr, flush=True)


def _missing(function: Any) -> int:
    return sum(not other.overloads for other in callees(function))


def _name(function: Any) -> str:
    return f"{function.__module__.removeprefix('edbatch.')}.{function.__name__}"
