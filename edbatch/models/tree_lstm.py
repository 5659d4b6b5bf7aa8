"""Binary TreeLSTM (Tai et al. 2015, equations 9-14) with a softmax at every node."""

from __future__ import annotations

from typing import Any

import edbatch as eb
from edbatch.models.arguments import checked
from edbatch.models.tree_network import TreeNetwork

TreeState = tuple[eb.Expression, eb.Expression]


class TreeLSTM(TreeNetwork):
    """Constituency TreeLSTM over binary trees whose leaves are words.

    `recurrent_dropout` is the rate at which new values are dropped before they go into a cell state, in training.

    Example:
        >>> import edbatch as eb
        >>> model = eb.ParameterCollection(seed=0)
        >>> lstm = TreeLSTM(model, words=10, labels=5, dim=4)
        >>> with eb.Graph():
        ...     hidden = lstm.hidden([3, 7, None], [(), (), (0, 1)])
        ...     scores = lstm.scores(hidden[-1])
        >>> hidden[-1].shape, scores.shape
        ((4,), (5,))
    """

    @checked
    def __init__(
        self, model: eb.ParameterCollection, words: int, labels: int, dim: int, *, recurrent_dropout: float = 0.0
    ) -> None:
        self.recurrent_dropout = recurrent_dropout
        super().__init__(model, words, labels, dim)

    def _add_parameters(self, model: eb.ParameterCollection, words: int) -> None:
        dim = self.dim
        self.embed = model.add_lookup_parameters((words, dim), name="embed")
        self.leaf_gates, self.gates = (2 * dim, dim), (4 * dim, dim)  # sigmoids, tanh
        # Gates in the order input, output, (forget left, forget right,) update: sigmoids side by side.
        self.W = model.add_parameters((3 * dim, dim), name="W")
        self.b_leaf = model.add_parameters((3 * dim,), name="b_leaf")
        self.U = model.add_parameters((5 * dim, 2 * dim), name="U")
        self.b = model.add_parameters((5 * dim,), name="b")

    @eb.cell
    def leaf(self, word: int) -> TreeState:
        """Hidden and cell state of a word."""
        gates, update = eb.split(eb.affine(self.W, eb.lookup(self.embed, word), self.b_leaf), self.leaf_gates)
        i, o = eb.split(eb.sigmoid(gates), 2)
        c = i * eb.dropout(eb.tanh(update), self.recurrent_dropout)
        return o * eb.tanh(c), c

    @eb.cell
    def compose(self, h1: eb.Expression, c1: eb.Expression, h2: eb.Expression, c2: eb.Expression) -> TreeState:
        """Hidden and cell state of a node with two children."""
        return self._composed(self.U, self.b, h1, c1, h2, c2)

    def _composed(self, U: Any, b: Any, h1: Any, c1: Any, h2: Any, c2: Any) -> TreeState:
        gates, update = eb.split(eb.affine(U, eb.concatenate([h1, h2]), b), self.gates)
        i, o, f1, f2 = eb.split(eb.sigmoid(gates), 4)
        c = i * eb.dropout(eb.tanh(update), self.recurrent_dropout) + f1 * c1 + f2 * c2
        return o * eb.tanh(c), c
