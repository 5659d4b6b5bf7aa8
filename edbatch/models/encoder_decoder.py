"""LSTM encoder-decoder: the encoder's last state starts the decoder (Sutskever et al. 2014)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import edbatch as eb
from edbatch.base.numbers import checked_integer
from edbatch.models.arguments import checked_sizes
from edbatch.models.classifier import Classifier
from edbatch.models.lstm import LSTM
from edbatch.models.recurrent import State


class EncoderDecoder(Classifier):
    """Reads a sentence, then says another, word by word; each word is told the one before.

    Args:
        model: collection that the parameters are added to.
        source_words, target_words: sizes of the two vocabularies.
        dim: size of embeddings, hidden and cell states.
        start, end: numbers of the target words that begin and end every sentence.

    Example:
        >>> import edbatch as eb
        >>> network = EncoderDecoder(eb.ParameterCollection(seed=0), source_words=10, target_words=12, dim=4)
        >>> with eb.Graph():
        ...     scores = [network.scores(h) for h in network.hidden([5, 6, 7], [8, 9])]
        ...     loss = network.loss([5, 6, 7], [8, 9])
        >>> len(scores), scores[0].shape, loss.shape  # of the two words and of the end
        (3, (12,), ())
    """

    def __init__(
        self,
        model: eb.ParameterCollection,
        source_words: int,
        target_words: int,
        dim: int,
        start: int = 1,
        end: int = 2,
    ) -> None:
        source_words, target_words, dim = checked_sizes(
            "EncoderDecoder", model, source_words=source_words, target_words=target_words, dim=dim
        )
        self.start = checked_integer("EncoderDecoder", "start", start, least=0)
        self.end = checked_integer("EncoderDecoder", "end", end, least=0)
        self.embed_source = model.add_lookup_parameters((source_words, dim), name="embed_source")
        self.embed_target = model.add_lookup_parameters((target_words, dim), name="embed_target")
        self.encoder = LSTM(model, dim, dim, name="encoder")
        self.decoder = LSTM(model, dim, dim, name="decoder")
        super().__init__(model, dim, target_words)

    def encode(self, source: Iterable[int]) -> State:
        """The decoder's state after the encoder has read a sentence."""
        _, state = self.encoder.initial_state().read([eb.lookup(self.embed_source, word) for word in source])
        return self.decoder.initial_state(*state.vectors)

    def speak(self, state: State, word: int) -> tuple[State, eb.Expression]:
        """The state after a word, and the scores [target_words] of the next; see `models.generation`."""
        after = state.add_input(eb.lookup(self.embed_target, word))
        return after, self.scores(after.output())

    def hidden(self, source: Iterable[int], target: Iterable[int]) -> list[eb.Expression]:
        """The decoder's outputs [dim] from which each word of `target`, and then its end, are predicted."""
        inputs = [eb.lookup(self.embed_target, word) for word in (self.start, *target)]
        return self.encode(source).transduce(inputs)

    def loss(self, source: Iterable[int], target: Sequence[int]) -> eb.Expression:
        """The sum of the cross-entropies of the words of `target` and of its end."""
        return self.cross_entropies(self.hidden(source, target), (*target, self.end))
