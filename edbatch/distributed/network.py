"""What a network between workers would cost."""

from __future__ import annotations

from dataclasses import dataclass

from edbatch.base.numbers import checked_real
from edbatch.errors import EdBatchError


@dataclass(frozen=True)
class Network:
    """What a reduction waits as if workers were on machines of their own: to see what a network would cost.

    Args:
        bytes_per_second: of one machine's connection, each way.
        latency: seconds from one machine to another.

    Raises:
        EdBatchError: one is no such number.

    Example:
        >>> Network(bytes_per_second=1.25e9, latency=1e-4).seconds(1_250_000)
        0.0011
    """

    bytes_per_second: float
    latency: float = 0.0

    def __post_init__(self) -> None:
        speed = checked_real("Network", "bytes_per_second", self.bytes_per_second)
        if not speed > 0:
            raise EdBatchError(f"Network: bytes_per_second: expected a positive number, got {speed}")
        checked_real("Network", "latency", self.latency)

    def seconds(self, size: int) -> float:
        """From sending so many bytes to having them."""
        return self.latency + size / self.bytes_per_second
