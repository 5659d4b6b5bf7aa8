"""Long short-term memory."""

from __future__ import annotations

import edbatch as eb
from edbatch.models.recurrent import Recurrent


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
    def step(self, x: eb.Expression, h: eb.Expression, c: eb.Expression) -> tuple[eb.Expression, eb.Expression]:
        """Output and cell state [dim]."""
        i, f, o, u = eb.split(self.W @ x + self.b + self.U @ h, 4)
        c = eb.sigmoid(f) * c + eb.sigmoid(i) * eb.dropout(eb.tanh(u), self.recurrent_dropout)
        return eb.sigmoid(o) * eb.tanh(c), c
