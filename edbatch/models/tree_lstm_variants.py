"""TreeLSTMs with parameters by position (N-ary), and by a type drawn for every node."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import shake_128

import edbatch as eb
from edbatch.base.numbers import checked_integer
from edbatch.models.recurrent import Layer
from edbatch.models.tree_lstm import TreeLSTM
from edbatch.models.trees import TreeState


class NaryTreeLSTM(Layer):
    """N-ary TreeLSTM (Tai et al. 2015, equations 9-14): at most N children, each place with weights of its own.

    A child that is missing has a state of zeros.

    Args:
        model: collection that the parameters are added to, under `name`.
        input_dim, dim: sizes of a node's input and of its states.
        places: the most children that a node has, N.
        name: prefix of its parameters' names; one that is free by default.
        recurrent_dropout: rate at which new values are dropped before they go into a node's state, in training.

    Raises:
        EdBatchError: a size is no positive integer, or `recurrent_dropout` is out of range.

    Example:
        >>> import edbatch as eb
        >>> from edbatch.models import NaryTreeLSTM
        >>> lstm = NaryTreeLSTM(eb.ParameterCollection(seed=0), input_dim=3, dim=2, places=3)
        >>> with eb.Graph():
        ...     leaves = [lstm.node(eb.ones(3), []) for _ in range(2)]
        ...     h, c = lstm.node(eb.zeros(3), leaves)
        >>> h.shape
        (2,)
    """

    prefix = "tree"

    def __init__(
        self,
        model: eb.ParameterCollection,
        input_dim: int,
        dim: int,
        places: int,
        name: str | None = None,
        *,
        recurrent_dropout: float = 0.0,
    ) -> None:
        self.places = checked_integer("NaryTreeLSTM", "places", places)
        super().__init__(model, input_dim, dim, name, recurrent_dropout=recurrent_dropout)

    def _add_parameters(self, model: eb.ParameterCollection, input_dim: int, name: str) -> None:
        dim, n = self.dim, self.places
        self.W = model.add_parameters((4 * dim, input_dim), name=f"{name}.W")  # forget, input, output, update
        self.b = model.add_parameters((4 * dim,), name=f"{name}.b")
        self.U = model.add_parameters(((n + 3) * dim, n * dim), name=f"{name}.U")  # N forgets, input, output, update

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
    def project(self, x: eb.Expression) -> eb.Expression:
        """W x + b [4 dim]: ready before the children are."""
        return eb.affine(self.W, x, self.b)

    @eb.cell
    def combine(self, projected: eb.Expression, *states: eb.Expression) -> TreeState:
        """The node's states from h and c of every place."""
        hs, cs = states[::2], states[1::2]
        below = eb.split(self.U @ eb.concatenate(list(hs)), self.places + 3)
        x_f, x_i, x_o, x_u = eb.split(projected, 4)
        i, o = eb.sigmoid(x_i + below[-3]), eb.sigmoid(x_o + below[-2])
        c = i * eb.dropout(eb.tanh(x_u + below[-1]), self.recurrent_dropout)
        for u_f, kept in zip(below, cs, strict=False):
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

    Args:
        model: collection that the parameters are added to.
        words: size of the vocabulary.
        labels: number of classes.
        dim: size of embeddings, hidden and cell states.
        seed: what the types are drawn from.
        recurrent_dropout: rate at which new values are dropped before they go into a cell state, in training.

    Raises:
        EdBatchError: `seed` is no integer from 0 on, or `recurrent_dropout` is out of range.

    Example:
        >>> import edbatch as eb
        >>> from edbatch.models import TreeLSTM2Type
        >>> lstm = TreeLSTM2Type(eb.ParameterCollection(seed=0), words=10, labels=5, dim=4, seed=1)
        >>> with eb.Graph():
        ...     hidden = lstm.hidden([3, 7, None], [(), (), (0, 1)])
        >>> hidden[-1].shape, lstm.types([3, 7, None]) == lstm.types([3, 7, None])
        ((4,), True)
    """

    def __init__(
        self,
        model: eb.ParameterCollection,
        words: int,
        labels: int,
        dim: int,
        seed: int = 0,
        *,
        recurrent_dropout: float = 0.0,
    ) -> None:
        self.seed = checked_integer("TreeLSTM2Type", "seed", seed, least=0)
        super().__init__(model, words, labels, dim, recurrent_dropout=recurrent_dropout)
        self.U_second = model.add_parameters((5 * self.dim, 2 * self.dim), name="U_second")
        self.b_second = model.add_parameters((5 * self.dim,), name="b_second")

    def types(self, words: Sequence[int | None]) -> list[int]:
        """Per node 0 or 1; that of a leaf means nothing."""
        return node_types(words, self.seed)

    @eb.cell
    def compose_second(self, h1: eb.Expression, c1: eb.Expression, h2: eb.Expression, c2: eb.Expression) -> TreeState:
        """Hidden and cell state of a node of the second type."""
        gates, update = eb.split(eb.affine(self.U_second, eb.concatenate([h1, h2]), self.b_second), self.gates)
        i, o, f1, f2 = eb.split(eb.sigmoid(gates), 4)
        c = i * eb.dropout(eb.tanh(update), self.recurrent_dropout) + f1 * c1 + f2 * c2
        return o * eb.tanh(c), c

    def hidden(self, words: Sequence[int | None], children: Sequence[tuple[int, ...]]) -> list[eb.Expression]:
        """Hidden vector of every node; arguments as of `TreeLSTM.hidden`."""
        nodes: list[TreeState] = []
        leaf, compose = self.leaf, (self.compose, self.compose_second)
        for word, below, kind in zip(words, children, node_types(words, self.seed), strict=True):
            if word is not None:
                nodes.append(leaf(word))
            else:
                left, right = below
                (h1, c1), (h2, c2) = nodes[left], nodes[right]
                nodes.append(compose[kind](h1, c1, h2, c2))
        return [h for h, _ in nodes]
