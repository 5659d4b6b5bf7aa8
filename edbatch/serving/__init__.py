"""Answer requests of different structure together, from any asyncio framework."""

from edbatch.serving.batcher import Batcher
from edbatch.serving.errors import BatcherError, DeadlineError, OverloadError, RequestError
from edbatch.serving.worker import Counters

__all__ = ["Batcher", "BatcherError", "Counters", "DeadlineError", "OverloadError", "RequestError"]
