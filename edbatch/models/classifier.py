"""A softmax at every node, word or step of a network."""

from __future__ import annotations

from collections.abc import Iterable

import edbatch as eb
from edbatch.models.arguments import checked


class Classifier:
    """Scores of labels from a vector: W_out h + b_out.

    Example:
        >>> import edbatch as eb
        >>> classifier = Classifier(eb.ParameterCollection(seed=0), dim=4, labels=3)
        >>> with eb.Graph():
        ...     loss = classifier.cross_entropies([eb.zeros(4), eb.zeros(4)], [2, 0])
        >>> print(f"{loss.value():.4f}")  # 2 log 3
        2.1972
    """

    @checked
    def __init__(self, model: eb.ParameterCollection, dim: int, labels: int) -> None:
        self.W_out = model.add_parameters((labels, dim), name="W_out")
        self.b_out = model.add_parameters((labels,), name="b_out")

    @eb.cell
    def scores(self, h: eb.Expression) -> eb.Expression:
        """Scores of the labels [labels]; their softmax are the probabilities."""
        return eb.affine(self.W_out, h, self.b_out)

    @eb.cell
    def probabilities(self, h: eb.Expression) -> eb.Expression:
        """Probabilities of the labels [labels]."""
        return eb.softmax(self.scores(h))

    @eb.cell
    def cross_entropy(self, h: eb.Expression, label: int) -> eb.Expression:
        """-log probability of the right label."""
        return eb.cross_entropy(self.scores(h), label)

    def cross_entropies(self, hidden: Iterable[eb.Expression], labels: Iterable[int]) -> eb.Expression:
        """The sum of the cross-entropies of several vectors."""
        cross_entropy = self.cross_entropy
        return eb.sum([cross_entropy(h, label) for h, label in zip(hidden, labels, strict=True)])
