"""Where in the user's code a call of the package was made: what warnings and `eb.options(trace_lines=True)` name."""

from __future__ import annotations

import sys
from types import FrameType

# What may stand on the stack between the user's line and ours without being anybody's program.
_INSIDE = frozenset(["edbatch", "numba", "click", "contextlib", "functools", "importlib", "threading", "runpy"])


def users_frame() -> FrameType:
    """The innermost frame that is neither of this package nor of what it is called through; else the outermost."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if str(frame.f_globals.get("__name__")).partition(".")[0] not in _INSIDE:
            return frame
        outermost, frame = frame, frame.f_back
    return outermost
