"""BiLSTM tagger (Huang et al. 2015): a tag for every word of a sentence; rare words may be read by their characters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import edbatch as eb
from edbatch.models.arguments import checked
from edbatch.models.classifier import Classifier
from edbatch.models.lstm import LSTM
from edbatch.models.recurrent import Stacked

Word = int | Sequence[int]


class BiLSTMTagger(Classifier):
    """LSTMs from the left and from the right, and a multilayer perceptron at every word.

    Args:
        dim: size of embeddings, hidden and cell states, at least 2.
        layers: LSTMs on top of one another, each way.
        characters: number of characters; 0 for a tagger that only knows whole words. The embedding of a word that is
            given as characters is the last outputs of two LSTMs of half the size that spell it forwards and backwards.
        dropout: rate at which outputs are dropped between layers, in training; see `Stacked`.

    Example:
        >>> import edbatch as eb
        >>> tagger = BiLSTMTagger(eb.ParameterCollection(seed=0), words=10, tags=3, dim=4, characters=26)
        >>> with eb.Graph():
        ...     scores = [tagger.scores(h) for h in tagger.hidden([3, 7, [0, 1, 1]])]
        ...     loss = tagger.loss([3, 7, [0, 1, 1]], [0, 2, 1])
        >>> len(scores), scores[0].shape, loss.shape
        (3, (3,), ())
    """

    @checked
    def __init__(
        self, model: eb.ParameterCollection, words: int, tags: int, dim: int, layers: int = 2, characters: int = 0,
        *, dropout: float = 0.0,
    ) -> None:  # fmt: skip
        self.embed = model.add_lookup_parameters((words, dim), name="embed")
        self.right, self.left = (
            Stacked([LSTM(model, dim, dim, name=f"{way}{layer}") for layer in range(layers)], dropout)
            for way in ("right", "left")
        )
        self.W_hidden = model.add_parameters((dim, 2 * dim), name="W_hidden")
        self.b_hidden = model.add_parameters((dim,), name="b_hidden")
        super().__init__(model, dim, tags)
        self.characters = None
        if characters:
            self.characters = model.add_lookup_parameters((characters, dim), name="characters")
            self.spell_right = LSTM(model, dim, dim - dim // 2, name="spell_right")
            self.spell_left = LSTM(model, dim, dim // 2, name="spell_left")

    def hidden(self, words: Sequence[Word]) -> list[eb.Expression]:
        """Per word the hidden layer [dim] of the perceptron, over the outputs of reading up to it from either side.

        A word is its number, or the numbers of its characters, where the tagger knows them.
        """
        xs = [self.word(word) for word in words]
        right = self.right.initial_state().transduce(xs)
        left = self.left.initial_state().transduce(xs[::-1])[::-1]
        perceptron = self.perceptron
        return [perceptron(r, l) for r, l in zip(right, left, strict=True)]

    def word(self, word: Word) -> eb.Expression:
        """The embedding [dim] of a word."""
        if isinstance(word, int) or not isinstance(word, Sequence):  # the second question takes longer
            return eb.lookup(self.embed, word)
        xs = [eb.lookup(self.characters, character) for character in word]
        right = self.spell_right.initial_state().transduce(xs)
        left = self.spell_left.initial_state().transduce(xs[::-1])
        return eb.concatenate([right[-1], left[-1]])

    @eb.cell
    def perceptron(self, right: eb.Expression, left: eb.Expression) -> eb.Expression:
        """The hidden layer [dim] over a word's two outputs [dim]."""
        return eb.tanh(eb.affine(self.W_hidden, eb.concatenate([right, left]), self.b_hidden))

    def loss(self, words: Sequence[Word], tags: Iterable[int]) -> eb.Expression:
        """The sum of the cross-entropies of all words."""
        return self.cross_entropies(self.hidden(words), tags)
