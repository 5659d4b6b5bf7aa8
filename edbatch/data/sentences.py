"""Plain text, a sentence on every line or cut into pieces of one length, and made-up sentences."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from itertools import islice

from edbatch.data.dependencies import random_dependencies
from edbatch.data.lines import write_samples
from edbatch.data.stream import Stream, lines, parsed, stream_samples
from edbatch.errors import EdBatchError

_WORD = re.compile(r"\S+", re.ASCII)  # a no-break space is part of a word


def stream_sentences(path: str | os.PathLike[str], skip_bad: bool = False) -> Stream[list[str]]:
    """The sentences of a file, one at a time; file and errors as of `read_sentences`.

    Args:
        skip_bad: skip lines that are no UTF-8, and count them (`.skipped`).
    """
    return stream_samples(path, lambda text, place: _WORD.findall(text), "sentences", "the cat sat", skip_bad)


def read_sentences(path: str | os.PathLike[str], skip_bad: bool = False) -> list[list[str]]:
    """Read a file with one sentence per line, words between blanks; blank lines are skipped.

    Raises:
        EdBatchError: the file cannot be read, holds no sentence or is no UTF-8; the message names file and line.
    """
    return stream_sentences(path, skip_bad).take()


def write_sentences(path: str | os.PathLike[str], sentences: Iterable[list[str]]) -> None:
    """Write sentences, one per line, so that `read_sentences` gives them back.

    Raises:
        EdBatchError: the file cannot be written.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "sentences.txt"
        >>> write_sentences(path, random_sentences(3, seed=0))
        >>> read_sentences(path) == random_sentences(3, seed=0)
        True
    """
    write_samples(path, map(" ".join, sentences))


def stream_pieces(path: str | os.PathLike[str], length: int, skip_bad: bool = False) -> Stream[list[str]]:
    """The words of a file in pieces of one length, wherever its lines end; what is left at its end is left out.

    Args:
        path: a file as of `read_sentences`.
        length: words in a piece.
        skip_bad: as of `stream_sentences`.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "sentences.txt"
        >>> write_sentences(path, [["a", "b", "c"], ["d", "e"]])
        >>> stream_pieces(path, 2).take()
        [['a', 'b'], ['c', 'd']]
    """
    found = parsed((line for line in lines(path) if not line.is_blank), lambda line: _WORD.findall(line.text))
    return Stream(_pieces(found, length), "pieces", f"{path}: expected {length:,} words at least", skip_bad)


def random_sentences(n: int, seed: int) -> list[list[str]]:
    """`n` made-up sentences: the words of `edbatch.data.dependencies.random_dependencies`.

    Example:
        >>> " ".join(random_sentences(1, seed=291)[0])
        'no teacher waits after a song of the story'
    """
    return [sentence.words for sentence in random_dependencies(n, seed)]


def random_pieces(n: int, length: int, seed: int) -> list[list[str]]:
    """`n` pieces of made-up sentences one after the other, each of `length` words.

    Example:
        >>> [len(piece) for piece in random_pieces(3, 64, seed=0)]
        [64, 64, 64]
    """
    sentences: list[list[str]] = []
    while sum(map(len, sentences)) < n * length:  # fewer sentences are the first of more
        sentences = random_sentences(2 * len(sentences) + 1 + n * length // 12, seed)
    return [piece for piece in islice(_pieces(sentences, length), n) if not isinstance(piece, EdBatchError)]


def _pieces(
    sentences: Iterable[list[str] | EdBatchError] | Iterable[list[str]], length: int
) -> Iterator[list[str] | EdBatchError]:
    left: list[str] = []
    for sentence in sentences:
        if isinstance(sentence, EdBatchError):
            yield sentence
            continue
        left += sentence
        whole = len(left) - len(left) % length
        yield from (left[at : at + length] for at in range(0, whole, length))
        left = left[whole:]
