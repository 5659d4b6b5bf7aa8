"""What becomes of exceptions while a graph runs."""

from __future__ import annotations

from collections.abc import Callable

from edbatch.errors import MissingMemoryError


class Fitting:
    """In its block, an array that there is no memory for is the caller's affair, who decides how large a graph is."""

    __slots__ = ()

    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, MemoryError) and not isinstance(error, MissingMemoryError):
            raise MissingMemoryError(
                f"this graph needs more memory than there is ({str(error) or 'none is left'}); expected smaller "
                "mini-batches"
            ) from None


class Failing(Fitting):
    """The same; and any exception leaves the graph without values.

    Args:
        fail: has it have none.
    """

    __slots__ = ("_fail",)

    def __init__(self, fail: Callable[[BaseException], None]) -> None:
        self._fail = fail

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None:
            return
        try:
            super().__exit__(kind, error, trace)
        except MissingMemoryError as missing:
            self._fail(missing)
            raise
        self._fail(error)
