"""Plain text, a sentence on every line, words between blanks, or cut into pieces of one length; random sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice

from edbatch.base.files import write_atomically
from edbatch.data.dependencies import random_dependencies
from edbatch.data.files import WORD, Path, file_format
from edbatch.errors import EdBatchError

__all__ = ["random_pieces", "random_sentences", "read_pieces", "read_sentences", "write_sentences"]

read_sentences, _ = file_format(
    lambda text, place: WORD.findall(text), "sentences", "one per line, such as the cat sat"
)


def write_sentences(path: Path, sentences: Iterable[list[str]]) -> None:
    """Write sentences, one per line."""
    write_atomically(path, "".join(f"{' '.join(words)}\n" for words in sentences))


def read_pieces(path: Path, length: int, skip_bad: bool = False, limit: int | None = None) -> list[list[str]]:
    """The words of a file in pieces of `length` words, wherever its lines end; what is left at its end is left out."""
    found = list(islice(_pieces(read_sentences(path, skip_bad), length), limit))
    if not found:
        raise EdBatchError(f"{path}: expected at least {length:,} words")
    return found


def random_sentences(n: int, seed: int) -> list[list[str]]:
    """`n` sentences: the words of `edbatch.data.dependencies.random_dependencies`."""
    return [sentence.words for sentence in random_dependencies(n, seed)]


def random_pieces(n: int, length: int, seed: int) -> list[list[str]]:
    """`n` pieces of random sentences one after the other, each of `length` words."""
    sentences: list[list[str]] = []
    while sum(map(len, sentences)) < n * length:
        sentences = random_sentences(2 * len(sentences) + 1 + n * length // 12, seed)
    return list(islice(_pieces(sentences, length), n))


def _pieces(sentences: Iterable[list[str]], length: int) -> Iterator[list[str]]:
    words = chain.from_iterable(sentences)
    while len(piece := list(islice(words, length))) == length:
        yield piece
