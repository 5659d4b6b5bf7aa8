"""More tree networks: child-sum TreeLSTM, and TreeGRU."""

from __future__ import annotations

from collections.abc import Sequence

import edbatch as eb
from edbatch.models.recurrent import Layer

TreeState = tuple[eb.Expression, eb.Expression]


class ChildSumTreeLSTM(Layer):
    """Child-sum TreeLSTM (Tai et al. 2015, equations 2-8): any number of children, in any order.

    Args:
        model: collection that the parameters are added to, under `name`.
        input_dim, dim: sizes of a node's input and of its states.
        name: prefix of its parameters' names; one that is free by default.
        recurrent_dropout: rate at which new values are dropped before they go into a node's state, in training.

    Raises:
        EdBatchError: `recurrent_dropout` is out of range.

    Example:
        >>> import edbatch as eb
        >>> lstm = ChildSumTreeLSTM(eb.ParameterCollection(seed=0), input_dim=3, dim=2)
        >>> with eb.Graph():
        ...     leaves = [lstm.node(eb.ones(3), []) for _ in range(3)]
        ...     h, c = lstm.node(eb.zeros(3), leaves)
        >>> h.shape
        (2,)
    """

    prefix = "tree"

    def _add_parameters(self, model: eb.ParameterCollection, input_dim: int, name: str) -> None:
        dim = self.dim
        self.W = model.add_parameters((4 * dim, input_dim), name=f"{name}.W")  # forget, input, output, update
        self.b = model.add_parameters((4 * dim,), name=f"{name}.b")
        self.U = model.add_parameters((3 * dim, dim), name=f"{name}.U")
        self.U_f = model.add_parameters((dim, dim), name=f"{name}.U_f")

    def node(self, x: eb.Expression, children: Sequence[TreeState]) -> TreeState:
        """Hidden and cell state of a node with input x [input_dim] over its children's states."""
        projected = self.project(x)
        if not children:
            return self.combine(projected, eb.zeros(self.dim), eb.zeros(self.dim))
        kept = eb.sum([self.keep(projected, h, c) for h, c in children])
        return self.combine(projected, eb.sum([h for h, _ in children]), kept)

    @eb.cell
    def project(self, x: eb.Expression) -> eb.Expression:
        """W x + b [4 dim]: ready before the children are."""
        return eb.affine(self.W, x, self.b)

    @eb.cell
    def keep(self, projected: eb.Expression, h: eb.Expression, c: eb.Expression) -> eb.Expression:
        """What the forget gate leaves of one child's cell state [dim]."""
        return eb.sigmoid(projected[: self.dim] + self.U_f @ h) * c

    @eb.cell
    def combine(self, projected: eb.Expression, h_sum: eb.Expression, kept: eb.Expression) -> TreeState:
        """The node's states from the sums over its children."""
        i, o, u = eb.split(projected[self.dim :] + self.U @ h_sum, 3)
        c = eb.sigmoid(i) * eb.dropout(eb.tanh(u), self.recurrent_dropout) + kept
        return eb.sigmoid(o) * eb.tanh(c), c


class TreeGRU(Layer):
    """Binary TreeGRU: reset and update gates per child, h = z1 h1 + z2 h2 + (1 - z1 - z2) n with z from a softmax over
    (child 1, child 2, new), so that the node's state is a mixture of its children's and a new one.

    Arguments and errors as of `ChildSumTreeLSTM`.

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
