"""A request, from the event loop where somebody waits to the thread that answers it, and back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any


class Request:
    """Who waits, in an event loop that runs, for what a call gives: of a sample, it returns its program."""

    def __init__(self, call: Callable[[], Any], loop: asyncio.AbstractEventLoop) -> None:
        self.call = call
        self.loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()
        self.number = -1  # once it is in flight
        self.alone = False  # whether it begins again, with no other in flight

    def tell(self, result: Any, error: Exception | None) -> None:
        """Tell who waits, from any thread."""
        with suppress(RuntimeError):  # the event loop is closed: nobody waits
            self.loop.call_soon_threadsafe(self._settle, result, error)

    def _settle(self, result: Any, error: Exception | None) -> None:
        if self.future.done():  # nobody waits any more
            return
        if error is None:
            self.future.set_result(result)
        else:
            self.future.set_exception(error)


def for_asyncio(error: BaseException) -> Exception:
    """What an event loop would take for its own end, or that of a task, as an error like others."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    raised = RuntimeError(f"the program raised {type(error).__name__}: {error}")
    raised.__cause__ = error
    return raised
