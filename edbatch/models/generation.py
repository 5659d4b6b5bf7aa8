"""Say a sentence word by word, each chosen by the scores that were computed after the one before.

A network has `start` and `end`, the numbers of the words before the first and after the last; `encode(source)`, the
state before the first word; and `speak(state, word)`, the state after a word with the scores [words] of the next.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import numpy as np

import edbatch as eb
from edbatch.base.numbers import is_real
from edbatch.errors import shown


async def greedy(network: Any, source: Any, longest: int = 100) -> list[int]:
    """The words with the best score at each step, without the one that ends them; a program for `edbatch.run`.

    `source` is the argument of the network's `encode`; a sentence that has not ended after `longest` words is cut off.

    Example:
        >>> import edbatch as eb
        >>> from edbatch.models import EncoderDecoder, generation
        >>> network = EncoderDecoder(eb.ParameterCollection(seed=0), source_words=10, target_words=12, dim=4)
        >>> found = eb.run([generation.greedy(network, [5, 6], longest=7), generation.greedy(network, [7], longest=3)])
        >>> [len(words) <= most for words, most in zip(found, (7, 3))]
        [True, True]
    """
    return await _said(network, source, longest, eb.argmax)


async def sampled(
    network: Any, source: Any, random: np.random.Generator, longest: int = 100, temperature: float = 1.0
) -> list[int]:
    """Words drawn with the probabilities that the network gives them; a program for `edbatch.run`.

    Args:
        network, source, longest: as of `greedy`.
        random: draws; one for each sentence, so that it does not matter what else runs.
        temperature: scores are divided by it, a number above 0: below 1 the probable words become more so.
    """
    if not is_real(temperature) or not temperature > 0:
        raise eb.EdBatchError(f"sampled: temperature={shown(temperature)}; expected a number above 0")

    async def one(scores: eb.Expression) -> int:
        return drawn(await eb.softmax(scores / temperature), random.random())

    return await _said(network, source, longest, one)


async def _said(
    network: Any, source: Any, longest: int, choose: Callable[[eb.Expression], Awaitable[Any]]
) -> list[int]:
    state, word = network.encode(source), network.start
    words: list[int] = []
    while len(words) < longest:
        state, scores = network.speak(state, word)
        word = int(await choose(scores))
        if word == network.end:
            break
        words.append(word)
    return words


def drawn(probabilities: np.ndarray, share: float) -> int:
    """An index, drawn with probabilities (or what is proportional to them) by a number from 0 to 1, without 1."""
    heaped = probabilities.cumsum(dtype=np.float64)
    return int(heaped.searchsorted(share * heaped[-1], side="right"))


class Hypothesis(NamedTuple):
    """A sentence, or the beginning of one, without its end; `score`: the sum of the log probabilities of its words, and
    of its end once it has ended."""

    words: tuple[int, ...]
    score: float


async def beam(network: Any, source: Any, width: int, longest: int = 100) -> list[Hypothesis]:
    """The best sentences that a beam search finds, the best first; a program for `edbatch.run`.

    At every step the `width` best ways to go on are kept, of all hypotheses together: those that end are done. It ends
    when no hypothesis can become better than the worst of the `width` best that are done. Scores are sums, so that
    short sentences are at an advantage.

    Args:
        network, source, longest: as of `greedy`; what has not ended after `longest` words is among the results.
        width: number of hypotheses; with 1, it is `greedy`.
    """
    open_: list[tuple[Hypothesis, Any, int]] = [(Hypothesis((), 0.0), network.encode(source), network.start)]
    done: list[Hypothesis] = []
    for _ in range(longest):
        steps = [network.speak(state, word) for _, state, word in open_]
        going_on = []
        best = [eb.top_k(eb.log_softmax(scores), min(width, *scores.shape)) for _, scores in steps]
        found = await eb.values([x for both in best for x in both])
        totals = np.array(found[::2], np.float64) + [[hypothesis.score] for hypothesis, _, _ in open_]
        for place in np.argsort(-totals, axis=None, kind="stable")[:width].tolist():  # of equals the first
            at, nth = divmod(place, totals.shape[1])
            word, score = int(found[2 * at + 1][nth]), float(totals[at, nth])
            if word == network.end:
                done.append(Hypothesis(open_[at][0].words, score))
            else:
                going_on.append((Hypothesis((*open_[at][0].words, word), score), steps[at][0], word))
        done = sorted(done, key=lambda hypothesis: -hypothesis.score)[:width]
        open_ = going_on
        if not open_ or (len(done) == width and open_[0][0].score <= done[-1].score):
            return done
    return sorted([*done, *(hypothesis for hypothesis, _, _ in open_)], key=lambda found: -found.score)[:width]
