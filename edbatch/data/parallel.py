"""Sentences in two languages, line by line in two files, and random ones."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from typing import NamedTuple

from edbatch.data.draws import Draws
from edbatch.data.files import WORD, Line, Path, lines, read_samples
from edbatch.data.sentences import write_sentences
from edbatch.errors import EdBatchError


class SentencePair(NamedTuple):
    """A sentence and its translation, as words."""

    source: list[str]
    target: list[str]


def read_parallel(source: Path, target: Path, skip_bad: bool = False, limit: int | None = None) -> list[SentencePair]:
    """All pairs of two files with one sentence per line, words between blanks, or the first `limit`; pairs of blank
    lines are skipped, and with `skip_bad` sentences that have no translation, with a warning."""

    def pair(both: tuple[Line | None, ...]) -> SentencePair:
        words = [[] if line is None else WORD.findall(line.text) for line in both]
        for found, path, other in zip(words, (source, target), both[::-1], strict=True):
            if not found and other is not None:
                raise EdBatchError(f"{other.place}: expected its translation on the same line of {path}, found none")
        return SentencePair(*words)

    both = zip_longest(lines(source), lines(target))
    filled = (pair for pair in both if not all(line is None or line.is_blank for line in pair))
    nothing = f"{source}: no sentences in it; expected one per line"
    return read_samples(filled, pair, "sentences", nothing, skip_bad, limit)


def write_parallel(source: Path, target: Path, pairs: Iterable[SentencePair]) -> None:
    """Write pairs, one per line of two files."""
    pairs = list(pairs)
    write_sentences(source, (pair.source for pair in pairs))
    write_sentences(target, (pair.target for pair in pairs))


CONSONANTS, VOWELS = "bdfgklmnprst", "aeiou"


def random_parallel(n: int, seed: int, longest: int = 12) -> list[SentencePair]:
    """`n` sentences of 1 to `longest` words over a vocabulary of 60, and the same read backwards, by letters.

    So the last word is translated first, as an encoder-decoder finds hard. With `longest=36` half of them have 10 to 28
    words, 18.5 on average: nearly as those of IWSLT'15's tst2012 (the English ones 10 to 23, 18 on average).

    Example:
        >>> for pair in random_parallel(2, seed=8):
        ...     print(*pair.source, "=", *pair.target)
        tan pan fun = nuf nap nat
        nin lin fun = nuf nil nin
    """
    draws, pairs = Draws(seed), []
    for _ in range(n):
        words = [draws.one_of(CONSONANTS) + draws.one_of(VOWELS) + "n" for _ in range(1 + draws.below(longest))]
        pairs.append(SentencePair(words, [word[::-1] for word in reversed(words)]))
    return pairs
