"""MV-RNN: every word and phrase is a vector and a matrix that changes its neighbour's vector (Socher et al. 2012)."""

from __future__ import annotations

import numpy as np

import edbatch as eb
from edbatch.models.arguments import checked_sizes
from edbatch.models.tree_network import TreeNetwork


class MVRNN(TreeNetwork):
    """Matrix-vector recursive network over binary trees: p = tanh(W [B a; A b]), P = W_M [A; B].

    Args:
        model: collection that the parameters are added to.
        words: size of the vocabulary; every word has dim * (dim + 1) parameters.
        labels: number of classes.
        dim: size of vectors, and of both sides of matrices.

    Example:
        >>> import edbatch as eb
        >>> mvrnn = MVRNN(eb.ParameterCollection(seed=0), words=10, labels=5, dim=4)
        >>> with eb.Graph():
        ...     hidden = mvrnn.hidden([3, 7, None], [(), (), (0, 1)])
        ...     scores = mvrnn.scores(hidden[-1])
        >>> hidden[-1].shape, scores.shape
        ((4,), (5,))
    """

    def __init__(self, model: eb.ParameterCollection, words: int, labels: int, dim: int) -> None:
        words, labels, dim = checked_sizes("MVRNN", model, words=words, labels=labels, dim=dim)
        self.vectors = model.add_lookup_parameters((words, dim), name="vectors")
        self.matrices = model.add_lookup_parameters((words, dim, dim), name="matrices")
        # Near the identity, at which a word leaves its neighbour as it is.
        self.matrices.set_value(np.eye(dim) + 0.1 * self.matrices.value())
        self.W = model.add_parameters((dim, 2 * dim), name="W")
        self.W_M = model.add_parameters((dim, 2 * dim), name="W_M")
        super().__init__(model, dim, labels)

    @eb.cell
    def leaf(self, word: int) -> tuple[eb.Expression, eb.Expression]:
        """Vector [dim] and matrix [dim, dim] of a word."""
        return eb.lookup(self.vectors, word), eb.lookup(self.matrices, word)

    @eb.cell
    def compose(
        self, a: eb.Expression, A: eb.Expression, b: eb.Expression, B: eb.Expression
    ) -> tuple[eb.Expression, eb.Expression]:
        """Vector and matrix of a node over its children's."""
        p = eb.tanh(self.W @ eb.concatenate([B @ a, A @ b]))
        return p, self.W_M @ eb.concatenate([A, B])
