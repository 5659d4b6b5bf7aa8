"""Words by number."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable

from edbatch.base.files import read_text
from edbatch.errors import EdBatchError


class Vocabulary:
    """Numbers words 1, 2, 3... in the order in which they first occur; 0 is every other word.

    `len(vocabulary)` counts the unknown word too, so it is the number of rows of an embedding.

    Args:
        words: any words, repeated or not.
        at_least: number only words that occur so often.

    Example:
        >>> vocabulary = Vocabulary("the cat sees the dog".split())
        >>> [vocabulary[word] for word in ("the", "dog", "mouse")]
        [1, 4, 0]
        >>> len(vocabulary)
        5
        >>> "cat" in Vocabulary("the cat sees the dog".split(), at_least=2)
        False
    """

    def __init__(self, words: Iterable[str], at_least: int = 1) -> None:
        frequent = (word for word, count in Counter(words).items() if count >= at_least)
        self._ids = {word: id for id, word in enumerate(frequent, start=1)}

    def __getitem__(self, word: str) -> int:
        return self._ids.get(word, 0)

    def __len__(self) -> int:
        return len(self._ids) + 1

    def __contains__(self, word: object) -> bool:
        return word in self._ids


def read_vocabulary(path: str | os.PathLike[str]) -> Vocabulary:
    """Read a file with one word per line, the unknown word first.

    Raises:
        EdBatchError: the file cannot be read, does not begin with `<unk>`, or a line is no word or one that was there
            before; the message names file and line.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "vocabulary.txt"
        >>> _ = path.write_text("<unk>\\n<s>\\nhello\\n")
        >>> vocabulary = read_vocabulary(path)
        >>> vocabulary["hello"], vocabulary["mouse"], len(vocabulary)
        (2, 0, 3)
    """
    lines = read_text(path).removesuffix("\n").split("\n")
    if lines[0] != "<unk>":
        raise EdBatchError(f"{path}:1: expected <unk>, the unknown word, found {lines[0]!r}")
    seen: set[str] = set()
    for number, word in enumerate(lines, start=1):
        if not word.strip() or word in seen:
            raise EdBatchError(f"{path}:{number}: expected a word that was not there before, found {word!r}")
        seen.add(word)
    return Vocabulary(lines[1:])
