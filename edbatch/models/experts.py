"""A mixture of experts of which only the best are asked (Shazeer et al. 2017; as a program, Suarez and Zhu 2019)."""

from __future__ import annotations

import numpy as np

import edbatch as eb
from edbatch.models.arguments import checked


class MixtureOfExperts:
    """y = Σ g_i tanh(W_i x + b_i) over the `chosen` experts with the largest scores; g is the softmax of those alone.

    All samples of a mini-batch that ask the same expert are one batch, and the others cost nothing.

    Example:
        >>> import edbatch as eb
        >>> from edbatch.models import MixtureOfExperts
        >>> layer = MixtureOfExperts(eb.ParameterCollection(seed=0), experts=8, input_dim=3, dim=2, chosen=2)
        >>> with eb.Graph():
        ...     ys = eb.run([layer.mix(eb.input(x)) for x in ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0])])
        >>> [y.shape for y in ys]
        [(2,), (2,)]
    """

    @checked
    def __init__(self, model: eb.ParameterCollection, experts: int, input_dim: int, dim: int, chosen: int = 1) -> None:
        self.chosen = chosen
        self.W_gate = model.add_parameters((experts, input_dim), name=model.free_name("W_gate"))
        self.experts = [_Expert(model, input_dim, dim) for _ in range(experts)]

    async def mix(self, x: eb.Expression) -> eb.Expression:
        """The output [dim] for an input [input_dim]; a program.

        Gradients reach the experts that were asked, and the gate by their weights (with one, it has none: its weight is
        then its share of the softmax over all).
        """
        gate = self.W_gate @ x
        best = np.argsort(-(await gate), kind="stable")[: self.chosen].tolist()
        outputs = [self.experts[number].answer(x) for number in best]
        if self.chosen == 1:
            return eb.softmax(gate)[best[0]] * outputs[0]
        weights = eb.softmax(eb.gather(gate, best, axis=0))
        return eb.sum([weights[place] * y for place, y in enumerate(outputs)])


class _Expert:
    def __init__(self, model: eb.ParameterCollection, input_dim: int, dim: int) -> None:
        name = model.free_name("expert")
        self.W = model.add_parameters((dim, input_dim), name=f"{name}.W")
        self.b = model.add_parameters((dim,), name=f"{name}.b")

    @eb.cell
    def answer(self, x: eb.Expression) -> eb.Expression:
        return eb.tanh(eb.affine(self.W, x, self.b))
