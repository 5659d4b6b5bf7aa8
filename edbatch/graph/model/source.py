"""Which call of `backward` a gradient came from."""

from __future__ import annotations

from contextvars import ContextVar


class Source:
    """A call of `backward`: each parameter that gets a gradient remembers the last one.

    Args:
        seconds: by stage, of the graph; an update by the gradient is booked there.

    Attributes:
        seconds: as given.
        is_applied: whether an optimizer has updated parameters by gradients of this call.
    """

    __slots__ = ("is_applied", "seconds")

    def __init__(self, seconds: dict[str, float]) -> None:
        self.seconds = seconds
        self.is_applied = False


#: The call of `backward` that runs.
running: ContextVar[Source | None] = ContextVar("edbatch_running_backward", default=None)
