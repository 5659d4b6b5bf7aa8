"""The line that tells users of a compilation that takes long."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

from edbatch.compiling.cache import cache_folder, works
from edbatch.compiling.fingerprint import callees

LONG, SECONDS = 2.5, 0.3  # seconds: what is announced; what compiling a function takes

_said = threading.Event()


def announce(function: Any) -> None:
    """Say, once per process, that a function is about to be compiled, if that takes long."""
    seconds = SECONDS * sum(not other.overloads for other in callees(function))
    if seconds < LONG:
        return
    name = f"{function.__module__.removeprefix('edbatch.')}.{function.__name__}"
    about = f"(about {seconds:.0f} s; all that a program needs, up to a minute; longer on a busy machine)"
    kept = f"machine, once {about}; kept in {cache_folder()}" if works() else f"process {about}; not kept"
    say_once(f"edbatch: compiling {name} for this {kept}", _said)


def say_once(text: str, said: threading.Event) -> None:
    """Tell the reader of a log why nothing happens for some seconds: once per process, and not among tests' output."""
    if not said.is_set() and sys.stderr is not None and "PYTEST_CURRENT_TEST" not in os.environ:
        said.set()
        print(text, file=sys.stderr, flush=True)
