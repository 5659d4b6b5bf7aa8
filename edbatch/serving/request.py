"""A request, from the event loop where somebody waits to the thread that answers it, and back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, TypeAlias


class Request:
    """Who waits for something, in an event loop.

    Args:
        call: what is asked for; of a sample, it returns its program.
        loop: that runs.
    """

    def __init__(self, call: Callable[[], Any], loop: asyncio.AbstractEventLoop) -> None:
        self.call = call
        self.loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()
        self.number = -1  # once it is in flight
        self.alone = False  # whether it begins again, with no other in flight

    def settle(self, result: Any, error: Exception | None) -> None:
        """Tell who waits; in the thread of its event loop."""
        if self.future.done():  # nobody waits any more
            return
        if error is None:
            self.future.set_result(result)
        else:
            self.future.set_exception(error)


#: A request, what it returned, and what it raised, if it did.
Settled: TypeAlias = tuple[Request, Any, Exception | None]


def tell(settled: Iterable[Settled]) -> None:
    """Tell who waits for what has ended, each event loop once."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Settled]] = {}
    for one in settled:
        by_loop.setdefault(one[0].loop, []).append(one)
    for loop, of_loop in by_loop.items():
        with suppress(RuntimeError):  # it is closed: nobody waits
            loop.call_soon_threadsafe(_settle, of_loop)


def _settle(settled: list[Settled]) -> None:
    for request, result, error in settled:
        request.settle(result, error)


def for_asyncio(error: BaseException) -> Exception:
    """What an event loop would take for its own end, or that of a task, as an error like others."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    raised = RuntimeError(f"the program raised {type(error).__name__}: {error}")
    raised.__cause__ = error
    return raised
