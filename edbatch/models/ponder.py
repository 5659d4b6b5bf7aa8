"""Adaptive computation time: a recurrent layer that decides how long to think about an input (Graves 2016)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import edbatch as eb
from edbatch.base.numbers import checked_integer, is_real
from edbatch.errors import shown
from edbatch.models.arguments import checked_sizes
from edbatch.models.gru import GRU


class Pondered(NamedTuple):
    """What a layer came to.

    Attributes:
        outputs: after each input [dim].
        cost: the sum of steps and remainders (Graves, eq. 9 to 12), a scalar; a small part of it is added to the loss.
        steps: how many each input took.
    """

    outputs: list[eb.Expression]
    cost: eb.Expression
    steps: list[int]


class AdaptiveGRU:
    """A GRU that takes several steps for each input, until its halting units add up to 1 - `epsilon`.

    How many is decided by values: `ponder` is a program for `edbatch.run`. The state after an input is the mean of the
    states of its steps, weighted by the halting units; the first of the steps is told that the input is new.

    Args:
        model: collection that the parameters are added to.
        input_dim, dim: sizes of input and state.
        most: steps that an input takes at most.
        epsilon: how much less than 1 is enough.

    Raises:
        EdBatchError: a size is no positive integer, or `epsilon` is not between 0 and 1.

    Example:
        >>> import edbatch as eb
        >>> from edbatch.models import AdaptiveGRU
        >>> layer = AdaptiveGRU(eb.ParameterCollection(seed=0), input_dim=3, dim=4, most=5)
        >>> with eb.Graph():
        ...     (found,) = eb.run([layer.ponder([eb.ones(3), eb.zeros(3)])])
        >>> len(found.outputs), found.outputs[0].shape, max(found.steps) <= 5
        (2, (4,), True)
    """

    def __init__(
        self, model: eb.ParameterCollection, input_dim: int, dim: int, most: int = 10, epsilon: float = 0.01
    ) -> None:
        place = "AdaptiveGRU"
        input_dim, dim = checked_sizes(place, model, input_dim=input_dim, dim=dim)
        if not is_real(epsilon) or not 0 < epsilon < 1:
            raise eb.EdBatchError(f"{place}: epsilon={shown(epsilon)}; expected a number between 0 and 1")
        self.dim, self.most, self.epsilon = dim, checked_integer(place, "most", most), float(epsilon)
        name = model.free_name("adaptive")
        self.layer = GRU(model, input_dim + 1, dim, name=f"{name}.gru")
        self.w_halt = model.add_parameters((dim,), name=f"{name}.w_halt")
        self.b_halt = model.add_parameters((1,), name=f"{name}.b_halt", init=1.0)  # few steps to begin with

    @eb.cell
    def halting(self, h: eb.Expression) -> eb.Expression:
        """How far a state wants to stop, in (0, 1)."""
        return eb.sigmoid(eb.dot(self.w_halt, h) + self.b_halt[0])

    async def ponder(self, xs: Iterable[eb.Expression]) -> Pondered:
        """Read inputs [input_dim] one after the other; a program."""
        state, outputs, costs, steps = eb.zeros(self.dim), [], [], []
        for x in xs:
            state, cost, count = await self._think(x, state)
            outputs.append(state)
            costs.append(cost)
            steps.append(count)
        return Pondered(outputs, eb.sum(costs, like=eb.scalar(0.0)), steps)

    async def _think(self, x: eb.Expression, state: eb.Expression) -> tuple[eb.Expression, eb.Expression, int]:
        """The state after an input, what it cost, and how many steps it took."""
        states: list[eb.Expression] = []
        weights: list[eb.Expression] = []
        spent = 0.0
        for count in range(1, self.most + 1):
            state = self.layer.step(eb.concatenate([x, eb.input([1.0 if count == 1 else 0.0])]), state)
            states.append(state)
            halt = self.halting(state)
            spent += float(await halt)
            if spent >= 1 - self.epsilon or count == self.most:
                break
            weights.append(halt)
        rest = 1.0 - eb.sum(weights, like=halt)
        return eb.weighted_sum([*weights, rest], states), rest + float(count), count
