"""Pointer network (Vinyals et al. 2015): a decoder whose output are positions of its input."""

from __future__ import annotations

from collections.abc import Sequence

import edbatch as eb
from edbatch.models.arguments import checked_sizes
from edbatch.models.lstm import LSTM
from edbatch.models.recurrent import State


class PointerDecoder:
    """Reads vectors, then points at them one after the other: u_j = v · tanh(W_1 e_j + W_2 d) (equation 3).

    The next input of the decoder is the vector that was pointed at. There are as many scores as inputs, whatever their
    number.

    Args:
        model: collection that the parameters are added to.
        input_dim: size of the vectors.
        dim: size of states.

    Raises:
        EdBatchError: a size is no positive integer.

    Example:
        >>> import edbatch as eb
        >>> from edbatch.models import PointerDecoder
        >>> network = PointerDecoder(eb.ParameterCollection(seed=0), input_dim=2, dim=4)
        >>> points = [[0.1, 0.2], [0.7, 0.1], [0.3, 0.9]]
        >>> with eb.Graph():
        ...     loss = network.loss(points, [1, 2, 0])
        ...     (order,) = eb.run([network.order(points)])
        >>> loss.shape, sorted(order)
        ((), [0, 1, 2])
    """

    def __init__(self, model: eb.ParameterCollection, input_dim: int, dim: int) -> None:
        self.input_dim, dim = checked_sizes("PointerDecoder", model, input_dim=input_dim, dim=dim)
        self.encoder = LSTM(model, self.input_dim, dim, name="encoder")
        self.decoder = LSTM(model, self.input_dim, dim, name="decoder")
        self.W_1 = model.add_parameters((dim, dim), name="W_1")
        self.W_2 = model.add_parameters((dim, dim), name="W_2")
        self.v = model.add_parameters((1, dim), name="v")

    @eb.cell
    def read(self, e: eb.Expression) -> eb.Expression:
        """W_1 e [dim], which is the same for every step."""
        return self.W_1 @ e

    @eb.cell
    def asked(self, d: eb.Expression) -> eb.Expression:
        """W_2 d [dim], which is the same for every input."""
        return self.W_2 @ d

    @eb.cell
    def score(self, read: eb.Expression, asked: eb.Expression) -> eb.Expression:
        """How much one input [dim] is meant [1]."""
        return self.v @ eb.tanh(read + asked)

    def encode(self, xs: Sequence[eb.Expression]) -> tuple[State, list[eb.Expression]]:
        """The decoder's first state, which is the encoder's last, and what is compared of every input."""
        if not len(xs):
            raise eb.EdBatchError("PointerDecoder: expected at least one input, got none")
        states = self.encoder.initial_state().add_inputs(xs)
        return self.decoder.initial_state(*states[-1].vectors), [self.read(state.output()) for state in states]

    def scores(self, state: State, read: Sequence[eb.Expression]) -> list[eb.Expression]:
        """Of every input [1]."""
        asked = self.asked(state.output())
        return [self.score(one, asked) for one in read]

    def loss(self, inputs: Sequence[Sequence[float]], order: Sequence[int]) -> eb.Expression:
        """The sum of the cross-entropies of the positions in `order`."""
        steps = zip(self.scores_along(inputs, order), order, strict=True)
        return eb.sum([eb.logsumexp(eb.concatenate(scores)) - eb.sum(scores[position]) for scores, position in steps])

    def scores_along(self, inputs: Sequence[Sequence[float]], order: Sequence[int]) -> list[list[eb.Expression]]:
        """The scores of every input [1] at every step, where the positions in `order` are pointed at."""
        xs = [eb.input(x) for x in inputs]
        state, read = self.encode(xs)
        found = []
        for pointed in [eb.zeros(self.input_dim), *(xs[position] for position in order[:-1])]:
            state = state.add_input(pointed)
            found.append(self.scores(state, read))
        return found

    async def order(self, inputs: Sequence[Sequence[float]]) -> list[int]:
        """The positions, the best of those left at every step, each once; a program."""
        return (await self._pointed(inputs))[0]

    async def step_scores(self, inputs: Sequence[Sequence[float]]) -> list[list[eb.Expression]]:
        """The scores of every input [1] at every step of `order`; a program."""
        return (await self._pointed(inputs))[1]

    async def _pointed(self, inputs: Sequence[Sequence[float]]) -> tuple[list[int], list[list[eb.Expression]]]:
        xs = [eb.input(x) for x in inputs]
        state, read = self.encode(xs)
        pointed, found, scores = eb.zeros(self.input_dim), list[int](), list[list[eb.Expression]]()
        while len(found) < len(xs):
            state = state.add_input(pointed)
            scores.append(self.scores(state, read))
            values = await eb.values(scores[-1])
            left = [position for position in range(len(xs)) if position not in found]
            found.append(max(left, key=lambda position: float(values[position][0])))
            pointed = xs[found[-1]]
        return found, scores
