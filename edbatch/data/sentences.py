"""Plain text, a sentence on every line or cut into pieces of one length, and random sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from edbatch.data.dependencies import random_dependencies
from edbatch.data.stream import WORD, Path, Stream, filled_lines, parsed, stream_samples, write_samples
from edbatch.errors import EdBatchError


def stream_sentences(path: Path, skip_bad: bool = False) -> Stream[list[str]]:
    """The sentences of a file, one per line, words between blanks, each read when it is asked for; blank lines are
    skipped, and with `skip_bad` lines that are no UTF-8."""
    return stream_samples(path, lambda text, place: WORD.findall(text), "sentences", "the cat sat", skip_bad)


def read_sentences(path: Path, skip_bad: bool = False) -> list[list[str]]:
    """All sentences of a file; arguments and errors as of `stream_sentences`."""
    return stream_sentences(path, skip_bad).take()


def write_sentences(path: Path, sentences: Iterable[list[str]]) -> None:
    """Write sentences, one per line."""
    write_samples(path, map(" ".join, sentences))


def stream_pieces(path: Path, length: int, skip_bad: bool = False) -> Stream[list[str]]:
    """The words of a file in pieces of `length` words, wherever its lines end; what is left at its end is left out."""
    found = parsed(filled_lines(path), lambda line: WORD.findall(line.text))
    return Stream(_pieces(found, length), "pieces", f"{path}: expected {length:,} words at least", skip_bad)


def random_sentences(n: int, seed: int) -> list[list[str]]:
    """`n` sentences: the words of `edbatch.data.dependencies.random_dependencies`."""
    return [sentence.words for sentence in random_dependencies(n, seed)]


def random_pieces(n: int, length: int, seed: int) -> list[list[str]]:
    """`n` pieces of random sentences one after the other, each of `length` words."""
    sentences: list[list[str]] = []
    while sum(map(len, sentences)) < n * length:
        sentences = random_sentences(2 * len(sentences) + 1 + n * length // 12, seed)
    return [piece for piece in islice(_pieces(sentences, length), n) if not isinstance(piece, EdBatchError)]


def _pieces(sentences: Iterable[list[str] | EdBatchError], length: int) -> Iterator[list[str] | EdBatchError]:
    left: list[str] = []
    for sentence in sentences:
        if isinstance(sentence, EdBatchError):
            yield sentence
            continue
        left += sentence
        whole = len(left) - len(left) % length
        yield from (left[at : at + length] for at in range(0, whole, length))
        left = left[whole:]
