"""Lattice LSTM and GRU: recurrent networks over characters and the words they make up (after Zhang and Yang 2018)."""

from __future__ import annotations

from collections.abc import Sequence

import edbatch as eb
from edbatch.models.arguments import checked
from edbatch.models.classifier import Classifier
from edbatch.models.gru import GRU
from edbatch.models.lstm import LSTM
from edbatch.models.recurrent import Recurrent

Arcs = Sequence[Sequence[tuple[int, int]]]


class LatticeNetwork(Classifier):
    """A recurrent layer for characters and one for words; a node's state is the mean over the arcs that end there.

    Zhang and Yang weight arcs by gates that add up to 1, so that a node's state is no larger than its arcs' are; the
    mean is that with equal weights. Sums would grow, until gradients are infinite.

    Example:
        >>> import edbatch as eb
        >>> from edbatch.models import LatticeLSTM
        >>> lstm = LatticeLSTM(eb.ParameterCollection(seed=0), characters=9, words=31, tags=3, dim=4)
        >>> arcs = [[], [(0, 7)], [(1, 8), (0, 30)]]  # two characters, and a word of both
        >>> with eb.Graph():
        ...     loss = lstm.loss(arcs, [0, 1, 2])
        >>> loss.shape
        ()
    """

    layer: type[LSTM] | type[GRU]

    @checked
    def __init__(self, model: eb.ParameterCollection, characters: int, words: int, tags: int, dim: int) -> None:
        self.dim = dim
        self.embed_character = model.add_lookup_parameters((characters, dim), name="embed_character")
        self.embed_word = model.add_lookup_parameters((words, dim), name="embed_word")
        self.character: Recurrent = self.layer(model, dim, dim, name="character")
        self.word: Recurrent = self.layer(model, dim, dim, name="word")
        super().__init__(model, dim, tags)

    def hidden(self, arcs: Arcs) -> list[eb.Expression]:
        """The output [dim] at every node but the first.

        Args:
            arcs: per node what ends there, as (node where it begins, number of the character or word): a character if
                it begins at the node just before, else a word. Nothing at node 0, at least one arc elsewhere.
        """
        # A state is one vector, of h and c beside one another: one sum for both.
        states: list[eb.Expression] = [eb.zeros(self.layer.states * self.dim)]
        character, word, dim = self.read_character, self.read_word, self.dim
        for before, ends in enumerate(arcs[1:]):
            if len(ends) == 1:
                ((source, id),) = ends
                states.append((character if source == before else word)(id, states[source]))
            else:
                found = [(character if source == before else word)(id, states[source]) for source, id in ends]
                states.append(eb.mean(found))
        return [state[:dim] for state in states[1:]] if self.layer.states > 1 else states[1:]

    @eb.cell
    def read_character(self, character: int, state: eb.Expression) -> eb.Expression:
        """The state after an arc that is a character."""
        return _step(self.character, eb.lookup(self.embed_character, character), state)

    @eb.cell
    def read_word(self, word: int, state: eb.Expression) -> eb.Expression:
        """The state after an arc that is a word."""
        return _step(self.word, eb.lookup(self.embed_word, word), state)

    def loss(self, arcs: Arcs, tags: Sequence[int]) -> eb.Expression:
        """The sum of the cross-entropies of all nodes but the first, whose tag means nothing."""
        return self.cross_entropies(self.hidden(arcs), tags[1:])


class LatticeLSTM(LatticeNetwork):
    """Lattice of LSTMs; hidden and cell states are averaged over arcs. Arguments as of `LatticeNetwork`."""

    layer = LSTM


class LatticeGRU(LatticeNetwork):
    """Lattice of GRUs. Arguments as of `LatticeNetwork`."""

    layer = GRU


def _step(layer: Recurrent, x: eb.Expression, state: eb.Expression) -> eb.Expression:
    if layer.states == 1:
        return layer.step(x, state)
    return eb.concatenate(layer.step(x, *eb.split(state, layer.states)))
