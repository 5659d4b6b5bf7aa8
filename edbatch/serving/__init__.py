"""Answer requests of different structure together, from any asyncio framework."""

from edbatch.serving.batcher import Batcher, DeadlineError, OverloadError
from edbatch.serving.worker import Counters

__all__ = ["Batcher", "Counters", "DeadlineError", "OverloadError"]
