"""Sentences in two languages, line by line in two files, and made-up ones."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from random import Random
from typing import NamedTuple

from edbatch.base.files import read_text, write_atomically
from edbatch.errors import EdBatchError

_WORD = re.compile(r"\S+", re.ASCII)  # a no-break space is part of a word


class SentencePair(NamedTuple):
    """A sentence and its translation, as words."""

    source: list[str]
    target: list[str]


def read_parallel(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> list[SentencePair]:
    """Read two files with one sentence per line, words between blanks; a pair of blank lines is skipped.

    Raises:
        EdBatchError: a file cannot be read, one has more lines than the other, a sentence has no translation, or there
            are no sentences; the message names file and line.
    """
    sources, targets = _sentences(source), _sentences(target)
    if len(sources) != len(targets):
        shorter, n = (source, len(sources)) if len(sources) < len(targets) else (target, len(targets))
        longer = target if shorter is source else source
        raise EdBatchError(
            f"{shorter}:{n + 1}: expected a sentence for line {n + 1} of {longer}, which has "
            f"{max(len(sources), len(targets)):,} lines, found the end"
        )
    pairs = []
    for number, (words, translation) in enumerate(zip(sources, targets, strict=True), start=1):
        if bool(words) != bool(translation):
            blank, other = (target, source) if words else (source, target)
            raise EdBatchError(
                f"{blank}:{number}: expected a sentence for line {number} of {other}, found a blank line"
            )
        if words:
            pairs.append(SentencePair(words, translation))
    if not pairs:
        raise EdBatchError(f"{source}: no sentences in it; expected one per line")
    return pairs


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


def _sentences(path: str | os.PathLike[str]) -> list[list[str]]:
    lines = read_text(path).split("\n")
    return [_WORD.findall(line) for line in (lines if lines[-1] else lines[:-1])]


CONSONANTS, VOWELS = "bdfgklmnprst", "aeiou"


def random_parallel(n: int, seed: int) -> list[SentencePair]:
    """`n` made-up sentences of 1 to 12 words over a vocabulary of 60, and the same read backwards, letter by letter.

    So the last word is translated first, as an encoder-decoder finds hard. Equal seeds give equal pairs, in every
    version of Python; fewer pairs are the first of more.

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
        length = 1 + int(12 * random.random())
        source = [one_of(CONSONANTS) + one_of(VOWELS) + "n" for _ in range(length)]
        pairs.append(SentencePair(source, [word[::-1] for word in reversed(source)]))
    return pairs
