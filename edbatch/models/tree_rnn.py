"""Recursive networks without gates: TreeRNN, and RNTN with a tensor; and the full trees of Tree-FC."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import edbatch as eb
from edbatch.models.arguments import checked_sizes
from edbatch.models.classifier import Classifier
from edbatch.models.recurrent import Layer


class TreeRNN(Classifier):
    """Recursive network over binary trees whose leaves are words (Socher et al. 2011): p = tanh(W [a; b] + bias).

    Args:
        model: collection that the parameters are added to.
        words: size of the vocabulary.
        labels: number of classes.
        dim: size of the vectors.

    Example:
        >>> import edbatch as eb
        >>> from edbatch.models import TreeRNN
        >>> network = TreeRNN(eb.ParameterCollection(seed=0), words=10, labels=5, dim=4)
        >>> with eb.Graph():
        ...     hidden = network.hidden([3, 7, None], [(), (), (0, 1)])
        >>> hidden[-1].shape
        (4,)
    """

    def __init__(self, model: eb.ParameterCollection, words: int, labels: int, dim: int) -> None:
        words, labels, dim = checked_sizes(type(self).__name__, model, words=words, labels=labels, dim=dim)
        self.dim = dim
        self.embed = model.add_lookup_parameters((words, dim), name="embed")
        self.W = model.add_parameters((dim, 2 * dim), name="W")
        self.b = model.add_parameters((dim,), name="b")
        super().__init__(model, dim, labels)

    @eb.cell
    def leaf(self, word: int) -> eb.Expression:
        """Vector [dim] of a word."""
        return eb.lookup(self.embed, word)

    @eb.cell
    def compose(self, a: eb.Expression, b: eb.Expression) -> eb.Expression:
        """Vector [dim] of a node over its children's."""
        return eb.tanh(eb.affine(self.W, eb.concatenate([a, b]), self.b))

    def hidden(self, words: Sequence[int | None], children: Sequence[tuple[int, ...]]) -> list[eb.Expression]:
        """Vector of every node; arguments as of `TreeLSTM.hidden`."""
        nodes: list[eb.Expression] = []
        for word, below in zip(words, children, strict=True):
            nodes.append(self.compose(*(nodes[child] for child in below)) if word is None else self.leaf(word))
        return nodes

    def loss(
        self, words: Sequence[int | None], children: Sequence[tuple[int, ...]], labels: Iterable[int]
    ) -> eb.Expression:
        """The sum of the cross-entropies of all nodes; arguments as of `hidden`, and per node its label."""
        return self.cross_entropies(self.hidden(words, children), labels)


class RNTN(TreeRNN):
    """Recursive neural tensor network (Socher et al. 2013, section 4.3): p = tanh([a; b]ᵀ V [a; b] + W [a; b] + bias).

    V has a matrix of 2 dim x 2 dim for every entry of p. Arguments as of `TreeRNN`.

    Example:
        >>> import edbatch as eb
        >>> from edbatch.models import RNTN
        >>> RNTN(eb.ParameterCollection(seed=0), words=10, labels=5, dim=4).V.shape
        (32, 8)
    """

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


class TreeFC(Layer):
    """A fully-connected layer over complete binary trees (Looks et al. 2017, section 4.1; Xu et al. 2018, Tree-FC):
    h = relu(W [h1; h2] + b). The papers' trees have 256 leaves.

    Arguments as of `TreeGRU`; there is no new value to drop.

    Example:
        >>> import edbatch as eb
        >>> from edbatch.models import TreeFC
        >>> tree = TreeFC(eb.ParameterCollection(seed=0), input_dim=3, dim=2)
        >>> with eb.Graph() as graph:
        ...     h = tree.root([eb.ones(3)] * 256)
        >>> h.shape
        (2,)
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
        """State [dim] of the root over as many leaves as there are inputs, a power of two.

        Raises:
            EdBatchError: there are 3, 5, 6, ... inputs, or none.
        """
        if not len(xs) or len(xs) & (len(xs) - 1):
            raise eb.EdBatchError(f"TreeFC.root: expected 1, 2, 4, 8, ... inputs, got {len(xs)}")
        level = [self.leaf(x) for x in xs]
        while len(level) > 1:
            level = [self.compose(*level[at : at + 2]) for at in range(0, len(level), 2)]
        return level[0]
