"""LSTM encoder-decoders: the encoder's last state starts the decoder (Sutskever et al. 2014), or the decoder attends to
all its outputs (Luong et al. 2015, global and input-feeding)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import edbatch as eb
from edbatch.models.arguments import checked
from edbatch.models.classifier import Classifier
from edbatch.models.lstm import LSTM
from edbatch.models.recurrent import Bidirectional, State


class EncoderDecoder(Classifier):
    """Reads a sentence, then says another, word by word; each word is told the one before.

    Args:
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

    @checked
    def __init__(
        self,
        model: eb.ParameterCollection,
        source_words: int,
        target_words: int,
        dim: int,
        start: int = 1,
        end: int = 2,
    ) -> None:
        self.start, self.end, self.dim = start, end, dim
        self.embed_source = model.add_lookup_parameters((source_words, dim), name="embed_source")
        self.embed_target = model.add_lookup_parameters((target_words, dim), name="embed_target")
        self._add_layers(model)
        super().__init__(model, dim, target_words)

    def _add_layers(self, model: eb.ParameterCollection) -> None:
        self.encoder: Any = LSTM(model, self.dim, self.dim, name="encoder")
        self.decoder = LSTM(model, self.dim, self.dim, name="decoder")

    def encode(self, source: Sequence[int]) -> Any:
        """The state before the first word: that of the decoder after the encoder has read a sentence."""
        _, state = self.encoder.initial_state().read([eb.lookup(self.embed_source, word) for word in source])
        return self.decoder.initial_state(*state.vectors)

    def read(self, state: Any, word: int) -> Any:
        """The state after a word; the next is predicted from its output."""
        return state.add_input(eb.lookup(self.embed_target, word))

    def speak(self, state: Any, word: int) -> tuple[Any, eb.Expression]:
        """The state after a word, and the scores [target_words] of the next; see `models.generation`."""
        after = self.read(state, word)
        return after, self.scores(after.output())

    def hidden(self, source: Sequence[int], target: Sequence[int]) -> list[eb.Expression]:
        """The vectors [dim] from which each word of `target`, and then its end, are predicted."""
        inputs = [eb.lookup(self.embed_target, word) for word in (self.start, *target)]
        return self.encode(source).transduce(inputs)

    def loss(self, source: Sequence[int], target: Sequence[int]) -> eb.Expression:
        """The sum of the cross-entropies of the words of `target` and of its end."""
        return self.cross_entropies(self.hidden(source, target), (*target, self.end))


class Attending(NamedTuple):
    """The state of a decoder with attention."""

    memory: eb.ExpressionList  # the encoder's outputs, one of each source word
    decoder: State
    fed: eb.Expression  # the last output, which is part of the next input

    def output(self) -> eb.Expression:
        """The last output [dim]."""
        return self.fed


class AttentionEncoderDecoder(EncoderDecoder):
    """Reads a sentence in both directions, then says another; at each word it attends to the sentence it has read.

    Arguments as of `EncoderDecoder`; half of `dim` is read in each direction.
    """

    def _add_layers(self, model: eb.ParameterCollection) -> None:
        dim = self.dim
        self.encoder = Bidirectional(
            LSTM(model, dim, dim - dim // 2, name="encoder.forward"),
            LSTM(model, dim, dim // 2, name="encoder.backward"),
        )
        self.decoder = LSTM(model, 2 * dim, dim, name="decoder")
        self.W_memory = model.add_parameters((dim, dim), name="W_memory")
        self.W_attended = model.add_parameters((dim, 2 * dim), name="W_attended")

    def encode(self, source: Sequence[int]) -> Attending:
        """The state before the first word; the source has at least one."""
        read = self.encoder.transduce([eb.lookup(self.embed_source, word) for word in source])
        return Attending(eb.ExpressionList(read), self.decoder.initial_state(), eb.zeros(self.dim))

    @eb.cell
    def query(self, h: eb.Expression) -> eb.Expression:
        """The query of the decoder's output to the memory (Luong's "general" score)."""
        return self.W_memory @ h

    @eb.cell
    def attended(self, context: eb.Expression, h: eb.Expression) -> eb.Expression:
        """The decoder's output with what it attended to (Luong's eq. 5)."""
        return eb.tanh(self.W_attended @ eb.concatenate([context, h]))

    @eb.cell
    def next_input(self, word: int, fed: eb.Expression) -> eb.Expression:
        """The embedding of a word beside the last output."""
        return eb.concatenate([eb.lookup(self.embed_target, word), fed])

    def read(self, state: Attending, word: int) -> Attending:
        """The state after a word; the next is predicted from its output."""
        decoder = state.decoder.add_input(self.next_input(word, state.fed))
        h = decoder.output()
        context = eb.attention(self.query(h), state.memory, state.memory, scale=False)
        return Attending(state.memory, decoder, self.attended(context, h))

    def hidden(self, source: Sequence[int], target: Sequence[int]) -> list[eb.Expression]:
        """The vectors [dim] from which each word of `target`, and then its end, are predicted."""
        states = accumulate((self.start, *target), self.read, initial=self.encode(source))
        return [state.fed for state in states][1:]
