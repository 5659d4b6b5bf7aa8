"""Help for tests of programs, and of EdBatch."""

from __future__ import annotations

from collections.abc import Iterator

from edbatch.base.context_stack import contextmanager
from edbatch.memory.plan.pool import BufferPool


@contextmanager
def poisoned_memory() -> Iterator[None]:
    """Fill memory with NaN whenever it is handed out, and whenever it is given back, while the block runs.

    What reads memory that nothing was written to, or that is free again, then shows NaN instead of numbers that may
    happen to be right. It holds for all graphs of the process, on all devices, and makes small graphs slower.

    Example:
        >>> import edbatch as eb
        >>> from edbatch.testing import poisoned_memory
        >>> with poisoned_memory(), eb.Graph():
        ...     eb.ones(2).value()
        array([1., 1.], dtype=float32)
    """
    before, BufferPool.poisons = BufferPool.poisons, True
    try:
        yield
    finally:
        BufferPool.poisons = before
