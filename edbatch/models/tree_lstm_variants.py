"""TreeLSTMs over any number of children, and with a type drawn for every node."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import shake_128
from typing import Any

import edbatch as eb
from edbatch.models.arguments import checked
from edbatch.models.recurrent import Layer
from edbatch.models.tree_lstm import TreeLSTM, TreeState


class ChildSumTreeLSTM(Layer):
    """Child-sum TreeLSTM (Tai et al. 2015, equations 2-8): any number of children, in any order.

    Arguments as of `LSTM`, `input_dim` that of a node's input; dropped are the new values of a node's state.

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
        self.W = model.add_parameters((4 * self.dim, input_dim), name=f"{name}.W")  # forget, input, output, update
        self.b = model.add_parameters((4 * self.dim,), name=f"{name}.b")
        self.U = model.add_parameters((3 * self.dim, self.dim), name=f"{name}.U")
        self.U_f = model.add_parameters((self.dim, self.dim), name=f"{name}.U_f")

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
        """The part of one child's cell state [dim] that the forget gate keeps."""
        return eb.sigmoid(projected[: self.dim] + self.U_f @ h) * c

    @eb.cell
    def combine(self, projected: eb.Expression, h_sum: eb.Expression, kept: eb.Expression) -> TreeState:
        """The node's states from the sums over its children."""
        i, o, u = eb.split(projected[self.dim :] + self.U @ h_sum, 3)
        c = eb.sigmoid(i) * eb.dropout(eb.tanh(u), self.recurrent_dropout) + kept
        return eb.sigmoid(o) * eb.tanh(c), c


def node_types(words: Sequence[int | None], seed: int) -> list[int]:
    """Per node of a tree 0 or 1, drawn from a seed and the tree's words; that of a leaf means nothing."""
    drawn = f"{seed}: {[None if word is None else int(word) for word in words]}"
    # A generator takes as long to be seeded as some nodes to be recorded, and is asked for every tree.
    return [byte & 1 for byte in shake_128(drawn.encode()).digest(len(words))]


class TreeLSTM2Type(TreeLSTM):
    """TreeLSTM whose inner nodes are of two types, each with parameters of its own (ED-Batch, Chen et al. 2023,
    "TreeLSTM-2Type"). The type of a node is drawn from a seed and the tree's words: it is the same in every epoch.

    Arguments as of `TreeLSTM`, and `seed`.
    """

    @checked
    def __init__(
        self, model: eb.ParameterCollection, words: int, labels: int, dim: int, seed: int = 0,
        *, recurrent_dropout: float = 0.0,
    ) -> None:  # fmt: skip
        self.seed = seed
        super().__init__(model, words, labels, dim, recurrent_dropout=recurrent_dropout)
        self.U_second = model.add_parameters((5 * self.dim, 2 * self.dim), name="U_second")
        self.b_second = model.add_parameters((5 * self.dim,), name="b_second")

    def _composers(self, words: Sequence[int | None]) -> list[Any]:
        return [self.compose_second if kind else self.compose for kind in node_types(words, self.seed)]

    @eb.cell
    def compose_second(self, h1: eb.Expression, c1: eb.Expression, h2: eb.Expression, c2: eb.Expression) -> TreeState:
        """Hidden and cell state of a node of the second type."""
        return self._composed(self.U_second, self.b_second, h1, c1, h2, c2)
