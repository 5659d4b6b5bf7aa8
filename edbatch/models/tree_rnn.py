"""Recursive networks without gates over binary trees of words: TreeRNN, RNTN with a tensor, MV-RNN with matrices."""

from __future__ import annotations

import numpy as np

import edbatch as eb
from edbatch.models.arguments import checked
from edbatch.models.tree_network import TreeNetwork


class TreeRNN(TreeNetwork):
    """Recursive network (Socher et al. 2011): p = tanh(W [a; b] + bias).

    Example:
        >>> import edbatch as eb
        >>> from edbatch.models import TreeRNN
        >>> network = TreeRNN(eb.ParameterCollection(seed=0), words=10, labels=5, dim=4)
        >>> with eb.Graph():
        ...     hidden = network.hidden([3, 7, None], [(), (), (0, 1)])
        >>> hidden[-1].shape
        (4,)
    """

    states = 1

    def _add_parameters(self, model: eb.ParameterCollection, words: int) -> None:
        self.embed = model.add_lookup_parameters((words, self.dim), name="embed")
        self.W = model.add_parameters((self.dim, 2 * self.dim), name="W")
        self.b = model.add_parameters((self.dim,), name="b")

    @eb.cell
    def leaf(self, word: int) -> eb.Expression:
        """Vector [dim] of a word."""
        return eb.lookup(self.embed, word)

    @eb.cell
    def compose(self, a: eb.Expression, b: eb.Expression) -> eb.Expression:
        """Vector [dim] of a node over its children's."""
        return eb.tanh(eb.affine(self.W, eb.concatenate([a, b]), self.b))


class RNTN(TreeRNN):
    """Recursive neural tensor network (Socher et al. 2013, section 4.3): p = tanh([a; b]ᵀ V [a; b] + W [a; b] + bias).

    V has a matrix of 2 dim x 2 dim for every entry of p.
    """

    @checked
    def __init__(self, model: eb.ParameterCollection, words: int, labels: int, dim: int) -> None:
        super().__init__(model, words, labels, dim)
        # The matrices of all entries below one another: one product makes V [a; b].
        self.V = model.add_parameters((2 * self.dim * self.dim, 2 * self.dim), name="V")

    @eb.cell
    def compose(self, a: eb.Expression, b: eb.Expression) -> eb.Expression:
        """Vector [dim] of a node over its children's."""
        both = eb.concatenate([a, b])
        bilinear = eb.reshape(self.V @ both, (self.dim, 2 * self.dim)) @ both
        return eb.tanh(bilinear + eb.affine(self.W, both, self.b))


class MVRNN(TreeNetwork):
    """Matrix-vector recursive network (Socher et al. 2012): p = tanh(W [B a; A b]), P = W_M [A; B].

    Every word and phrase is a vector and a matrix that changes its neighbour's vector; `dim` is the size of vectors and
    of both sides of matrices: a word has dim * (dim + 1) parameters.
    """

    def _add_parameters(self, model: eb.ParameterCollection, words: int) -> None:
        dim = self.dim
        self.vectors = model.add_lookup_parameters((words, dim), name="vectors")
        self.matrices = model.add_lookup_parameters((words, dim, dim), name="matrices")
        # Near the identity, at which a word leaves its neighbour as it is.
        self.matrices.set_value(np.eye(dim) + 0.1 * self.matrices.value())
        self.W = model.add_parameters((dim, 2 * dim), name="W")
        self.W_M = model.add_parameters((dim, 2 * dim), name="W_M")

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
