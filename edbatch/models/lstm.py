"""Long short-term memory: vanilla, with coupled gates, with peepholes."""

from __future__ import annotations

import edbatch as eb
from edbatch.models.recurrent import Recurrent

Vectors = tuple[eb.Expression, eb.Expression]


class LSTM(Recurrent):
    """LSTM (Hochreiter and Schmidhuber 1997, with forget gates): i, f, o = σ(W x + U h + b), u = tanh(W x + U h + b),
    c' = f c + i u, h' = o tanh(c').

    Arguments as of `Recurrent`; the new values that recurrent dropout drops are u.

    Example:
        >>> import edbatch as eb
        >>> lstm = LSTM(eb.ParameterCollection(seed=0), input_dim=3, dim=2)
        >>> with eb.Graph():
        ...     h, c = lstm.initial_state().add_input(eb.ones(3)).vectors
        >>> h.shape, c.shape
        ((2,), (2,))
    """

    prefix = "lstm"
    states = 2
    gates = 4  # input, forget, output, update

    @eb.cell
    def step(self, x: eb.Expression, h: eb.Expression, c: eb.Expression) -> Vectors:
        """Output and cell state [dim]."""
        i, f, o, u = eb.split(self.W @ x + self.b + self.U @ h, 4)
        c = eb.sigmoid(f) * c + eb.sigmoid(i) * eb.dropout(eb.tanh(u), self.recurrent_dropout)
        return eb.sigmoid(o) * eb.tanh(c), c


class CoupledLSTM(LSTM):
    """LSTM whose input gate is what its forget gate leaves: c' = f c + (1 - f) u (Greff et al. 2017, "CIFG")."""

    gates = 3  # forget, output, update

    @eb.cell
    def step(self, x: eb.Expression, h: eb.Expression, c: eb.Expression) -> Vectors:
        """Output and cell state [dim]."""
        f, o, u = eb.split(self.W @ x + self.b + self.U @ h, 3)
        f = eb.sigmoid(f)
        c = f * c + (1 - f) * eb.dropout(eb.tanh(u), self.recurrent_dropout)
        return eb.sigmoid(o) * eb.tanh(c), c


class PeepholeLSTM(LSTM):
    """LSTM whose gates see the cell state: i, f = σ(... + p c), o = σ(... + p c') (Gers and Schmidhuber 2000)."""

    def _add_parameters(self, model: eb.ParameterCollection, input_dim: int, name: str) -> None:
        super()._add_parameters(model, input_dim, name)
        self.p_i, self.p_f, self.p_o = (
            model.add_parameters((self.dim,), name=f"{name}.p_{gate}", init="uniform") for gate in "ifo"
        )

    @eb.cell
    def step(self, x: eb.Expression, h: eb.Expression, c: eb.Expression) -> Vectors:
        """Output and cell state [dim]."""
        i, f, o, u = eb.split(self.W @ x + self.b + self.U @ h, 4)
        new = eb.dropout(eb.tanh(u), self.recurrent_dropout)
        c = eb.sigmoid(f + self.p_f * c) * c + eb.sigmoid(i + self.p_i * c) * new
        return eb.sigmoid(o + self.p_o * c) * eb.tanh(c), c
