"""LSTM language model (Zaremba et al. 2014): each word is predicted from those before it."""

from __future__ import annotations

from collections.abc import Sequence

import edbatch as eb
from edbatch.models.arguments import checked
from edbatch.models.classifier import Classifier
from edbatch.models.lstm import LSTM
from edbatch.models.recurrent import Stacked, StackedState


class LanguageModel(Classifier):
    """Layers of LSTM over the words of a sentence, of any length: "var-length LSTM" of Cavs (Xu et al. 2018).

    Args:
        start, end: numbers of the words that begin and end every sentence.
        dropout: rate at which outputs are dropped on their way to the next layer and to the scores, in training.

    Example:
        >>> import edbatch as eb
        >>> from edbatch.models import LanguageModel
        >>> network = LanguageModel(eb.ParameterCollection(seed=0), words=10, dim=4, layers=2)
        >>> with eb.Graph():
        ...     loss = eb.sum([network.loss([5, 6, 7]), network.loss([8])])
        >>> loss.shape
        ()
    """

    @checked
    def __init__(
        self, model: eb.ParameterCollection, words: int, dim: int, layers: int = 1,
        *, start: int = 1, end: int = 2, dropout: float = 0.0,
    ) -> None:  # fmt: skip
        self.start, self.end, self.dropout = start, end, dropout
        self.embed = model.add_lookup_parameters((words, dim), name="embed")
        self.layers = Stacked([LSTM(model, dim, dim, name=f"layer{n}") for n in range(layers)], dropout)
        super().__init__(model, dim, words)

    def encode(self, source: object = None) -> StackedState:
        """The state before the first word; there is nothing to read, see `models.generation`."""
        return self.layers.initial_state()

    def speak(self, state: StackedState, word: int) -> tuple[StackedState, eb.Expression]:
        """The state after a word, and the scores [words] of the next; see `models.generation`."""
        after = state.add_input(eb.lookup(self.embed, word))
        return after, self.scores(after.output())

    def hidden(self, words: Sequence[int]) -> list[eb.Expression]:
        """The vectors [dim] from which each word, and then the end, are predicted."""
        xs = [eb.lookup(self.embed, word) for word in (self.start, *words)]
        return [eb.dropout(h, self.dropout) for h in self.layers.initial_state().transduce(xs)]

    def loss(self, words: Sequence[int]) -> eb.Expression:
        """The sum of the cross-entropies of the words and of the end."""
        return self.cross_entropies(self.hidden(words), (*words, self.end))
