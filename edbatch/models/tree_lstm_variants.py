"""TreeLSTMs over any number of children (child-sum, N-ary), and with a type drawn for every node."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import shake_128
from typing import Any

import edbatch as eb
from edbatch.base.numbers import checked_integer
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


class NaryTreeLSTM(ChildSumTreeLSTM):
    """N-ary TreeLSTM (Tai et al. 2015, equations 9-14): at most N children, each place with weights of its own.

    A child that is missing has a state of zeros. Arguments as of `ChildSumTreeLSTM`, and `places`: the most children
    that a node has, N.
    """

    def __init__(
        self, model: eb.ParameterCollection, input_dim: int, dim: int, places: int, name: str | None = None,
        *, recurrent_dropout: float = 0.0,
    ) -> None:  # fmt: skip
        self.places = checked_integer("NaryTreeLSTM", "places", places)
        super().__init__(model, input_dim, dim, name, recurrent_dropout=recurrent_dropout)

    def _add_parameters(self, model: eb.ParameterCollection, input_dim: int, name: str) -> None:
        self.W = model.add_parameters((4 * self.dim, input_dim), name=f"{name}.W")
        self.b = model.add_parameters((4 * self.dim,), name=f"{name}.b")
        shape = ((self.places + 3) * self.dim, self.places * self.dim)  # N forgets, input, output, update
        self.U = model.add_parameters(shape, name=f"{name}.U")

    def node(self, x: eb.Expression, children: Sequence[TreeState]) -> TreeState:
        """Hidden and cell state of a node with input x [input_dim] over its children's states, by place.

        Raises:
            EdBatchError: there are more than N children.
        """
        if len(children) > self.places:
            raise eb.EdBatchError(f"NaryTreeLSTM.node: expected at most {self.places} children, got {len(children)}")
        zeros = (eb.zeros(self.dim), eb.zeros(self.dim))
        states = [*children, *[zeros] * (self.places - len(children))]
        return self.combine(self.project(x), *[vector for state in states for vector in state])

    @eb.cell
    def combine(self, projected: eb.Expression, *states: eb.Expression) -> TreeState:
        """The node's states from h and c of every place."""
        below = eb.split(self.U @ eb.concatenate(list(states[::2])), self.places + 3)
        x_f, x_i, x_o, x_u = eb.split(projected, 4)
        i, o = eb.sigmoid(x_i + below[-3]), eb.sigmoid(x_o + below[-2])
        c = i * eb.dropout(eb.tanh(x_u + below[-1]), self.recurrent_dropout)
        for u_f, kept in zip(below, states[1::2], strict=False):
            c = c + eb.sigmoid(x_f + u_f) * kept
        return o * eb.tanh(c), c


def node_types(words: Sequence[int | None], seed: int) -> list[int]:
    """Per node of a tree 0 or 1, drawn from a seed and the tree's words."""
    drawn = f"{seed}: {[None if word is None else int(word) for word in words]}"
    # A generator takes as long to be seeded as some nodes to be recorded, and is asked for every tree.
    return [byte & 1 for byte in shake_128(drawn.encode()).digest(len(words))]


class TreeLSTM2Type(TreeLSTM):
    """TreeLSTM whose inner nodes are of two types, each with parameters of its own (ED-Batch, Chen et al. 2023,
    "TreeLSTM-2Type"). The type of a node is drawn from a seed and the tree's words: it is the same in every epoch.

    Arguments as of `TreeLSTM`, and `seed`.
    """

    def __init__(
        self, model: eb.ParameterCollection, words: int, labels: int, dim: int, seed: int = 0,
        *, recurrent_dropout: float = 0.0,
    ) -> None:  # fmt: skip
        self.seed = checked_integer("TreeLSTM2Type", "seed", seed, least=0)
        super().__init__(model, words, labels, dim, recurrent_dropout=recurrent_dropout)
        self.U_second = model.add_parameters((5 * self.dim, 2 * self.dim), name="U_second")
        self.b_second = model.add_parameters((5 * self.dim,), name="b_second")

    def types(self, words: Sequence[int | None]) -> list[int]:
        """Per node 0 or 1; that of a leaf means nothing."""
        return node_types(words, self.seed)

    def _composers(self, words: Sequence[int | None]) -> list[Any]:
        return [self.compose_second if kind else self.compose for kind in self.types(words)]

    @eb.cell
    def compose_second(self, h1: eb.Expression, c1: eb.Expression, h2: eb.Expression, c2: eb.Expression) -> TreeState:
        """Hidden and cell state of a node of the second type."""
        return self._composed(self.U_second, self.b_second, (h1, c1), (h2, c2))
