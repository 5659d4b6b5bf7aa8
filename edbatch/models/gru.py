"""Gated recurrent units, and the simple recurrent network."""

from __future__ import annotations

import edbatch as eb
from edbatch.models.arguments import checked
from edbatch.models.recurrent import Recurrent


class GRU(Recurrent):
    """GRU as in cuDNN and PyTorch: z, r = σ(W x + U h + b), n = tanh(W x + b + r (U h + b_n)), h' = (1 - z) n + z h.

    Arguments as of `Recurrent`; the new values that recurrent dropout drops are n.
    """

    prefix = "gru"
    gates = 3  # update, reset, new

    def _add_parameters(self, model: eb.ParameterCollection, input_dim: int, name: str) -> None:
        super()._add_parameters(model, input_dim, name)
        self.b_n = model.add_parameters((self.dim,), name=f"{name}.b_n")

    @eb.cell
    def step(self, x: eb.Expression, h: eb.Expression) -> eb.Expression:
        """The next state [dim]."""
        z, r, n = eb.split(self.W @ x + self.b, 3)
        u_z, u_r, u_n = eb.split(self.U @ h, 3)
        z = eb.sigmoid(z + u_z)
        n = eb.tanh(n + eb.sigmoid(r + u_r) * (u_n + self.b_n))
        return (1 - z) * eb.dropout(n, self.recurrent_dropout) + z * h


class SimpleRNN(Recurrent):
    """h' = tanh(W x + U h + b) (Elman 1990); arguments as of `GRU`.

    It keeps nothing of the state as it is, so that it has no recurrent dropout.
    """

    prefix = "rnn"

    @checked
    def __init__(self, model: eb.ParameterCollection, input_dim: int, dim: int, name: str | None = None) -> None:
        super().__init__(model, input_dim, dim, name)

    @eb.cell
    def step(self, x: eb.Expression, h: eb.Expression) -> eb.Expression:
        """The next state [dim]."""
        return eb.tanh(self.W @ x + self.b + self.U @ h)
