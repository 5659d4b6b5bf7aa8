"""Lattices from raw text: all words of a lexicon that lie in a sentence."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from edbatch.base.numbers import checked_integer
from edbatch.data.lattices import Arc, Lattice
from edbatch.data.stream import lines
from edbatch.data.vocabulary import Vocabulary
from edbatch.errors import EdBatchError


class Lexicon:
    """Words of two characters and more, numbered 1, 2, 3... in the order in which they first occur.

    `len(lexicon)` is the number of rows of an embedding: no word has the number 0.

    Args:
        words: any words, repeated or not; those of one character are left out, for characters are arcs anyway.
        longest: words of more characters are left out, too.

    Raises:
        EdBatchError: `longest` is no positive integer.

    Example:
        >>> lexicon = Lexicon(["北京", "大学", "北京大学", "京"])
        >>> len(lexicon), list(lexicon.words("北京大学"))
        (4, [(0, 2, 1), (0, 4, 3), (2, 4, 2)])
    """

    def __init__(self, words: Iterable[str], longest: int = 20) -> None:
        longest = checked_integer("Lexicon", "longest", longest)
        self._numbers: dict[str, int] = {}
        self._begun: set[str] = set()  # all that words begin with: no text is looked up further than a word may go
        for word in words:
            if 2 <= len(word) <= longest and word not in self._numbers:
                self._numbers[word] = len(self._numbers) + 1
                self._begun.update(word[:end] for end in range(1, len(word)))

    def __len__(self) -> int:
        return len(self._numbers) + 1

    def words(self, text: str) -> Iterator[tuple[int, int, int]]:
        """Where the words in a text begin and end, and their numbers; by where they begin, the shortest first."""
        for start in range(len(text)):
            for end in range(start + 1, len(text) + 1):
                part = text[start:end]
                if number := self._numbers.get(part):
                    yield start, end, number
                if part not in self._begun:
                    break

    def lattice(self, text: str, characters: Vocabulary, tags: Sequence[int] | None = None) -> Lattice:
        """The lattice of a sentence (Zhang and Yang 2018, figure 2): its characters, and every word in it.

        Args:
            text: the sentence; blanks are left out.
            characters: numbers of characters.
            tags: of each character that is no blank; 0 by default.

        Raises:
            EdBatchError: nothing but blanks, or another number of tags.

        Example:
            >>> lexicon = Lexicon(["so", "sofa", "far"])
            >>> print(lexicon.lattice("so far", Vocabulary("sofar")))
            6
            0 0 0 0 0 0
            0
            1 0 1
            2 1 2 0 1
            1 2 3
            2 3 4 0 2
            2 4 5 2 3
        """
        text = "".join(text.split())
        if not text:
            raise EdBatchError("Lexicon.lattice: expected a sentence of at least one character, got none")
        if tags is not None and len(tags) != len(text):
            raise EdBatchError(f"Lexicon.lattice: expected {len(text)} tags, one per character, got {len(tags)}")
        arcs: list[list[Arc]] = [[]] + [[Arc(node, characters[character])] for node, character in enumerate(text)]
        for start, end, number in self.words(text):
            arcs[end].append(Arc(start, number))
        return Lattice([0, *(tags or [0] * len(text))], [tuple(of_node) for of_node in arcs])


def read_lexicon(path: str | os.PathLike[str], longest: int = 20) -> Lexicon:
    """Read a file with a word at the beginning of every line; what follows after a blank (a frequency, a vector) is
    left out, and so are blank lines.

    Raises:
        EdBatchError: the file cannot be read, is no UTF-8, or holds no word of two characters.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "words.txt"
        >>> _ = path.write_text("so 0.1 0.3\\nfar 0.2 -0.1\\n")
        >>> len(read_lexicon(path))
        3
    """
    lexicon = Lexicon((line.text.split(maxsplit=1)[0] for line in lines(path) if not line.is_blank), longest)
    if len(lexicon) == 1:
        raise EdBatchError(f"{path}: no words in it; expected one of two characters or more at the start of a line")
    return lexicon
