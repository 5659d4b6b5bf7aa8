"""Sentences in two languages, line by line in two files, and made-up ones."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from random import Random
from typing import NamedTuple

from edbatch.base.files import write_atomically
from edbatch.data.stream import Line, Stream, lines, parsed
from edbatch.errors import EdBatchError

_WORD = re.compile(r"\S+", re.ASCII)  # a no-break space is part of a word


class SentencePair(NamedTuple):
    """A sentence and its translation, as words."""

    source: list[str]
    target: list[str]


def stream_parallel(
    source: str | os.PathLike[str], target: str | os.PathLike[str], skip_bad: bool = False
) -> Stream[SentencePair]:
    """The pairs of two files, one at a time; files and errors as of `read_parallel`.

    Args:
        skip_bad: skip sentences that have no translation, and count them (`.skipped`).
    """

    def pair(both: tuple[Line | None, Line | None]) -> SentencePair:
        words = [[] if line is None else _WORD.findall(line.text) for line in both]
        for line, found, other in ((both[0], words[0], both[1]), (both[1], words[1], both[0])):
            if not found:
                assert other is not None
                path = target if line is both[1] else source
                raise EdBatchError(
                    f"{path}:{other.number}: expected a sentence for line {other.number} of {other.path}, "
                    f"found {'the end' if line is None else 'a blank line'}"
                )
        return SentencePair(*words)

    nothing = f"{source}: no sentences in it; expected one per line"
    return Stream(parsed(_filled(source, target), pair), "sentences", nothing, skip_bad)


def read_parallel(
    source: str | os.PathLike[str], target: str | os.PathLike[str], skip_bad: bool = False
) -> list[SentencePair]:
    """Read two files with one sentence per line, words between blanks.

    A pair of blank lines is skipped, and with `skip_bad` a sentence that has no translation.

    Raises:
        EdBatchError: a file cannot be read, one has more lines than the other, a sentence has no translation, or there
            are no sentences; the message names file and line.
    """
    return stream_parallel(source, target, skip_bad).take()


def _filled(
    source: str | os.PathLike[str], target: str | os.PathLike[str]
) -> Iterator[tuple[Line | None, Line | None]]:
    """Lines with the same number, of which one says something; None after the end of a file."""
    for both in zip_longest(lines(source), lines(target)):
        if not all(line is None or line.is_blank for line in both):
            yield both


def write_parallel(
    source: str | os.PathLike[str], target: str | os.PathLike[str], pairs: Iterable[SentencePair]
) -> None:
    """Write pairs, one per line of two files, so that `read_parallel` gives them back.

    Raises:
        EdBatchError: a file cannot be written.

    Example:
        >>> import pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> write_parallel(folder / "a.txt", folder / "b.txt", random_parallel(3, seed=0))
        >>> read_parallel(folder / "a.txt", folder / "b.txt") == random_parallel(3, seed=0)
        True
    """
    pairs = list(pairs)
    write_atomically(source, "".join(f"{' '.join(pair.source)}\n" for pair in pairs))
    write_atomically(target, "".join(f"{' '.join(pair.target)}\n" for pair in pairs))


CONSONANTS, VOWELS = "bdfgklmnprst", "aeiou"


def random_parallel(n: int, seed: int, longest: int = 12) -> list[SentencePair]:
    """`n` made-up sentences of 1 to `longest` words over a vocabulary of 60, and the same read backwards, by letters.

    So the last word is translated first, as an encoder-decoder finds hard. With `longest=36` half of them have 10 to 28
    words, 18.5 on average: nearly as those of IWSLT'15's tst2012 (1,553 pairs: half of the English sentences have 10 to
    23 words, 18 on average, of the Vietnamese 12 to 29 and 22; one English in ten has over 32, the longest 93).
    Equal seeds give equal pairs, in every version of Python; fewer pairs are the first of more.

    Example:
        >>> for pair in random_parallel(2, seed=8):
        ...     print(*pair.source, "=", *pair.target)
        tan pan fun = nuf nap nat
        nin lin fun = nuf nil nin
    """
    random = Random(seed)

    def one_of(letters: str) -> str:
        # random() alone is promised to be the same in every version of Python.
        return letters[int(len(letters) * random.random())]

    pairs = []
    for _ in range(n):
        length = 1 + int(longest * random.random())
        source = [one_of(CONSONANTS) + one_of(VOWELS) + "n" for _ in range(length)]
        pairs.append(SentencePair(source, [word[::-1] for word in reversed(source)]))
    return pairs
