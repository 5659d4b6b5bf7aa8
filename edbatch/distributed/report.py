"""What a training by workers took."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median

from edbatch.distributed.job import Done


@dataclass
class Report:
    """What a training by workers took so far.

    Attributes:
        workers: how many.
        steps: done.
        replaced: workers that were lost.
        bytes_per_step: sent by one worker to others, on average.
        seconds: of each step; and cpu_seconds, of the worker whose processor took longest.
        balance: nodes of the largest part of a mini-batch, over the average of its parts, on average.
    """

    workers: int
    steps: int = 0
    replaced: int = 0
    bytes_per_step: float = 0.0
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    balance: float = 0.0

    def note(self, done: list[Done]) -> None:
        """Add a step."""
        self.steps += 1
        self.bytes_per_step += (sum(x.bytes for x in done) / len(done) - self.bytes_per_step) / self.steps
        self.seconds.append(max(x.seconds for x in done))
        self.cpu_seconds.append(max(x.cpu_seconds for x in done))
        nodes = [x.nodes for x in done]
        self.balance += (max(nodes) * len(nodes) / max(sum(nodes), 1) - self.balance) / self.steps

    def __str__(self) -> str:
        return (
            f"{self.workers} workers, {self.steps:,} steps, {1e3 * median(self.seconds or [0]):.1f} ms each; "
            f"{self.bytes_per_step / 2**20:.2f} MiB sent per step and worker; largest part {self.balance:.3f} of the "
            f"average; {self.replaced} workers replaced"
        )
