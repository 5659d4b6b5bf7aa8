"""Graph attention networks (Veličković et al. 2018) over small graphs of any size, such as molecules."""

from __future__ import annotations

from collections.abc import Sequence

import edbatch as eb
from edbatch.models.recurrent import Layer


class GraphAttention(Layer):
    """One layer with one head: a node's new state is a mixture of its own and its neighbours' (equations 1-4).

    h'_i = Σ_j α_ij W h_j, with α the softmax over j of leaky_relu(a_to W h_i + a_from W h_j), slope 0.2. The sum over
    neighbours of any number is one type: the nodes of all graphs of a mini-batch run together.

    Arguments as of `TreeGRU`; there is no new value to drop.

    Example:
        >>> import edbatch as eb
        >>> from edbatch.models import GraphAttention
        >>> layer = GraphAttention(eb.ParameterCollection(seed=0), input_dim=3, dim=2)
        >>> with eb.Graph():
        ...     hs = layer.nodes([eb.ones(3), eb.zeros(3), eb.ones(3)], [[1], [0, 2], [1]])
        >>> [h.shape for h in hs]
        [(2,), (2,), (2,)]
    """

    prefix = "gat"

    def _add_parameters(self, model: eb.ParameterCollection, input_dim: int, name: str) -> None:
        self.W = model.add_parameters((self.dim, input_dim), name=f"{name}.W")
        self.a_to = model.add_parameters((1, self.dim), name=f"{name}.a_to")
        self.a_from = model.add_parameters((1, self.dim), name=f"{name}.a_from")

    @eb.cell
    def project(self, x: eb.Expression) -> tuple[eb.Expression, eb.Expression, eb.Expression]:
        """W x [dim], and what it says to scores as the node that attends, and as one attended to."""
        h = self.W @ x
        return h, (self.a_to @ h)[0], (self.a_from @ h)[0]

    @eb.cell
    def score(self, to: eb.Expression, of: eb.Expression) -> eb.Expression:
        """Of one edge."""
        return eb.leaky_relu(to + of, 0.2)

    def nodes(self, xs: Sequence[eb.Expression], neighbours: Sequence[Sequence[int]]) -> list[eb.Expression]:
        """New states [dim] of all nodes of one graph.

        Args:
            xs: inputs [input_dim] of the nodes.
            neighbours: per node the positions of those it attends to besides itself.
        """
        projected = [self.project(x) for x in xs]
        found = []
        for at, near in enumerate(neighbours):
            around = [projected[other] for other in (at, *near)]
            shares = eb.softmax([self.score(projected[at][1], of) for _, _, of in around])
            found.append(eb.weighted_sum(shares, [h for h, _, _ in around]))
        return found
