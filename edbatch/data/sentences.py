"""Plain text, a sentence on every line, words between blanks, or cut into pieces of one length; random sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from edbatch.data.dependencies import random_dependencies
from edbatch.data.stream import WORD, Path, Stream, by_line, file_format
from edbatch.errors import EdBatchError

__all__ = [
    "random_pieces", "random_sentences", "read_sentences", "stream_pieces", "stream_sentences", "write_sentences",
]  # fmt: skip


def _words(text: str, place: str) -> list[str]:
    return WORD.findall(text)


stream_sentences, read_sentences, write_sentences = file_format(
    by_line(_words), "sentences", "one per line, such as the cat sat", " ".join
)


def stream_pieces(path: Path, length: int, skip_bad: bool = False) -> Stream[list[str]]:
    """The words of a file in pieces of `length` words, wherever its lines end; what is left at its end is left out."""
    return Stream(
        _pieces(by_line(_words)(path), length), "pieces", f"{path}: expected {length:,} words at least", skip_bad
    )


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
