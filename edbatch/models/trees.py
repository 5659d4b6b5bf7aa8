"""Layers over binary trees of vectors: TreeGRU, and the full trees of Tree-FC."""

from __future__ import annotations

from collections.abc import Sequence

import edbatch as eb
from edbatch.models.recurrent import Layer


class TreeGRU(Layer):
    """Binary TreeGRU: reset and update gates per child, h = z1 h1 + z2 h2 + (1 - z1 - z2) n with z from a softmax over
    (child 1, child 2, new), so that the node's state is a mixture of its children's and a new one.

    Arguments as of `LSTM`, `input_dim` that of a leaf's input; dropped are the new values of a node's state.

    Example:
        >>> import edbatch as eb
        >>> gru = TreeGRU(eb.ParameterCollection(seed=0), input_dim=3, dim=2)
        >>> with eb.Graph():
        ...     h = gru.compose(gru.leaf(eb.ones(3)), gru.leaf(eb.zeros(3)))
        >>> h.shape
        (2,)
    """

    prefix = "tree"

    def _add_parameters(self, model: eb.ParameterCollection, input_dim: int, name: str) -> None:
        dim = self.dim
        self.W = model.add_parameters((2 * dim, input_dim), name=f"{name}.W")  # update, new
        self.b_leaf = model.add_parameters((2 * dim,), name=f"{name}.b_leaf")
        self.U = model.add_parameters((5 * dim, 2 * dim), name=f"{name}.U")  # reset 1, 2; mixture of 1, 2, new
        self.b = model.add_parameters((5 * dim,), name=f"{name}.b")
        self.U_n = model.add_parameters((dim, 2 * dim), name=f"{name}.U_n")
        self.b_n = model.add_parameters((dim,), name=f"{name}.b_n")

    @eb.cell
    def leaf(self, x: eb.Expression) -> eb.Expression:
        """State [dim] of a leaf with input x [input_dim]."""
        z, n = eb.split(eb.affine(self.W, x, self.b_leaf), 2)
        return eb.sigmoid(z) * eb.dropout(eb.tanh(n), self.recurrent_dropout)

    @eb.cell
    def compose(self, h1: eb.Expression, h2: eb.Expression) -> eb.Expression:
        """State [dim] of a node over its children's."""
        r1, r2, m1, m2, m3 = eb.split(eb.affine(self.U, eb.concatenate([h1, h2]), self.b), 5)
        reset = eb.concatenate([eb.sigmoid(r1) * h1, eb.sigmoid(r2) * h2])
        n = eb.dropout(eb.tanh(eb.affine(self.U_n, reset, self.b_n)), self.recurrent_dropout)
        top = eb.maximum(eb.maximum(m1, m2), m3)
        z1, z2, z3 = eb.exp(m1 - top), eb.exp(m2 - top), eb.exp(m3 - top)
        return (z1 * h1 + z2 * h2 + z3 * n) / (z1 + z2 + z3)


class TreeFC(Layer):
    """A fully-connected layer over complete binary trees (Looks et al. 2017, section 4.1; Xu et al. 2018, Tree-FC):
    h = relu(W [h1; h2] + b). The papers' trees have 256 leaves.

    Arguments as of `TreeGRU`; there is no new value to drop.
    """

    prefix = "tree"

    def _add_parameters(self, model: eb.ParameterCollection, input_dim: int, name: str) -> None:
        self.W_leaf = model.add_parameters((self.dim, input_dim), name=f"{name}.W_leaf")
        self.W = model.add_parameters((self.dim, 2 * self.dim), name=f"{name}.W")
        self.b = model.add_parameters((self.dim,), name=f"{name}.b")

    @eb.cell
    def leaf(self, x: eb.Expression) -> eb.Expression:
        """State [dim] of a leaf with input x [input_dim]."""
        return self.W_leaf @ x

    @eb.cell
    def compose(self, h1: eb.Expression, h2: eb.Expression) -> eb.Expression:
        """State [dim] of a node over its children's."""
        return eb.relu(eb.affine(self.W, eb.concatenate([h1, h2]), self.b))

    def root(self, xs: Sequence[eb.Expression]) -> eb.Expression:
        """State [dim] of the root over as many leaves as there are inputs: 1, 2, 4, 8, ..."""
        level = [self.leaf(x) for x in xs]
        while len(level) > 1:
            level = [self.compose(*level[at : at + 2]) for at in range(0, len(level), 2)]
        return level[0]
