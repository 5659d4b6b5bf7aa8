"""The state that foreign ops keep with a graph, and their callbacks at the end of a backward pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from edbatch.base.context_stack import leaving
from edbatch.errors import EdBatchError


class ForeignRun:
    """The state that foreign ops keep with the graph that calls them; see `foreign_run`.

    In its block the graph computes.

    Attributes:
        kept: by a key of the function's, what lasts as long as the values: it is gone when they are computed anew,
            given back by `Graph.release`, or freed with the graph.
        at_end: by a key of the function's, what is called, without arguments, when the backward pass that is under way
            has computed all gradients, and parameters have got theirs. It is dropped where the pass fails, and where
            parameters get none: in `edbatch.gradients` and `x.gradient()`.
        is_open: whether its block has been entered.
    """

    #: That of the graph that computes now.
    current: ClassVar[ForeignRun | None] = None

    def __init__(self) -> None:
        self.kept: dict[Any, Any] = {}
        self.at_end: dict[Any, Callable[[], None]] = {}
        self.is_open = False
        self._outer: ForeignRun | None = None

    def __enter__(self) -> None:
        self.at_end, self._outer = {}, ForeignRun.current
        self.is_open, ForeignRun.current = True, self

    @leaving
    def __exit__(self, *_: object) -> None:
        if self.is_open:
            ForeignRun.current = self._outer
            self.is_open, self.at_end, self._outer = False, {}, None

    def end(self) -> None:
        """Call what is to be called at the end of a backward pass."""
        for function in self.at_end.values():
            function()


def foreign_run() -> ForeignRun:
    """Return the state of the graph that calls a foreign op, for the op's function and its gradient.

    Returns:
        An object with two dictionaries: `kept`, for what the gradient needs besides arrays, lasts as long as the values
        that were computed; `at_end` has what is called when a backward pass is over (see `ForeignRun`).

    Raises:
        EdBatchError: no graph calls a foreign op.

    Example:
        >>> import numpy as np, edbatch as eb
        >>> @eb.foreign(out=lambda A, b: (b, ()))
        ... def solve(A, b):  # and a number of each node, by which the gradient finds what is kept of it
        ...     kept = eb.foreign_run().kept
        ...     numbers = len(kept) + np.arange(len(A), dtype=A.dtype)
        ...     inverses = np.linalg.inv(A)
        ...     kept.update(zip(numbers, inverses))
        ...     return np.einsum("nij,nj->ni", inverses, b), numbers
        >>> @solve.gradient
        ... def solve_gradient(gradient, A, b, result):
        ...     inverses = np.stack([eb.foreign_run().kept[number] for number in result[1]])
        ...     back = np.einsum("nij,ni->nj", inverses, gradient[0])
        ...     return -back[:, :, None] * result[0][:, None], back
        >>> with eb.Graph():
        ...     b = eb.input([2.0, 4.0])
        ...     x, _ = solve(eb.input([[2.0, 0.0], [0.0, 4.0]]), b)
        >>> x.value(), x.backward([1.0, 1.0]), b.gradient()
        (array([1., 1.], dtype=float32), None, array([0.5 , 0.25], dtype=float32))
    """
    if ForeignRun.current is None:
        raise EdBatchError("foreign_run: expected a call in a function of a foreign op, while a graph runs")
    return ForeignRun.current
