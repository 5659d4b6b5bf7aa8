"""What a loss function of the user's gives for a mini-batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from edbatch.errors import EdBatchError
from edbatch.graph.expression import Expression
from edbatch.graph.expression_array import is_one
from edbatch.graph.ops import sum as sum_of

Losses: TypeAlias = Callable[[list[Any]], Expression | Sequence[Expression]]


def total_of(losses: Losses, batch: list[Any]) -> tuple[Expression, int]:
    """The sum of the losses of a mini-batch, recorded in the graph that is current, and how many there are.

    Raises:
        EdBatchError: they are no losses, or there are none.
    """
    found = losses(batch)
    if not isinstance(found, Expression | Sequence):
        raise EdBatchError(f"Run: losses: expected expressions, got {type(found).__name__}")
    given = [found] if is_one(found) else list(found)
    for at, loss in enumerate(given):
        if not isinstance(loss, Expression) or loss.shape:
            what = f"shape {loss.shape}" if isinstance(loss, Expression) else type(loss).__name__
            raise EdBatchError(f"Run: losses: loss {at} of a mini-batch: expected shape (), got {what}")
    if not given:
        raise EdBatchError(f"Run: losses: none for {len(batch)} samples; expected at least one")
    return sum_of(given), len(given)
