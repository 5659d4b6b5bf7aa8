"""What becomes of exceptions while a graph runs."""

from __future__ import annotations

from collections.abc import Callable

from edbatch.base.context_stack import leaving
from edbatch.errors import MissingMemoryError


class graph_errors:
    """Translate a MemoryError into an error that tells the user to reduce the mini-batch.

    Args:
        fail: called with any exception: has the graph have no values.
    """

    __slots__ = ("_fail",)

    def __init__(self, fail: Callable[[BaseException], None] = lambda error: None) -> None:
        self._fail = fail

    def __enter__(self) -> None:
        """Nothing to do."""

    @leaving
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None:
            return
        if isinstance(error, MemoryError) and not isinstance(error, MissingMemoryError):
            missing = MissingMemoryError(
                f"this graph needs more memory than there is ({str(error) or 'none is left'}); expected smaller "
                "mini-batches"
            )
            self._fail(missing)
            raise missing from None
        self._fail(error)
