"""Words by number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


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
