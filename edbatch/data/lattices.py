"""Lattices of characters and words with a tag at every node, and made-up ones."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from tqdm import tqdm

from edbatch.base.files import read_text, write_atomically
from edbatch.data.lines import clipped
from edbatch.errors import EdBatchError

_INTEGERS = re.compile(r"\s*[0-9]{1,9}(\s+[0-9]{1,9})*\s*", re.ASCII)


class Arc(NamedTuple):
    """What ends at a node: a character, if it begins at the node just before, else a word.

    Attributes:
        source: the node where it begins.
        id: number of the character or of the word; the two are numbered apart.
    """

    source: int
    id: int


@dataclass(frozen=True, slots=True)
class Lattice:
    """A sentence as a lattice: node 0 is its start, node i comes after its i-th character.

    Attributes:
        tags: per node its tag, 0, 1, 2...; the start has one too, which means nothing.
        arcs: per node what ends at it: nothing at the start, at least one arc elsewhere.

    Example:
        >>> lattice = Lattice([0, 1, 2], [(), (Arc(0, 7),), (Arc(1, 8), Arc(0, 30))])
        >>> len(lattice)
        3
        >>> print(lattice)
        3
        0 1 2
        0
        1 0 7
        2 1 8 0 30
    """

    tags: list[int]
    arcs: list[tuple[Arc, ...]]

    def __len__(self) -> int:
        return len(self.tags)

    def __str__(self) -> str:
        lines = [" ".join(map(str, [len(arcs), *(number for arc in arcs for number in arc)])) for arcs in self.arcs]
        return "\n".join([str(len(self)), " ".join(map(str, self.tags)), *lines])


class Sizes(NamedTuple):
    """How many characters, words and tags there are: one more than the largest number of each."""

    characters: int
    words: int
    tags: int


def sizes(lattices: Sequence[Lattice]) -> Sizes:
    """The sizes of the tables that a model of these lattices needs.

    Example:
        >>> sizes([Lattice([0, 1, 2], [(), (Arc(0, 7),), (Arc(1, 8), Arc(0, 30))])])
        Sizes(characters=9, words=31, tags=3)
    """
    characters = words = tags = 0
    for lattice in lattices:
        tags = max(tags, *lattice.tags)
        for node, arcs in enumerate(lattice.arcs):
            for source, id in arcs:
                if source == node - 1:
                    characters = max(characters, id)
                else:
                    words = max(words, id)
    return Sizes(characters + 1, words + 1, tags + 1)


def read_lattices(path: str | os.PathLike[str]) -> list[Lattice]:
    """Read a file of lattices.

    First their number, on a line of its own. Then per lattice: the number of nodes; their tags on one line; and a line
    per node, `k source id source id ...`: the number of arcs that end there, and of each arc where it begins and what
    it is. Blank lines are skipped.

    Raises:
        EdBatchError: the file cannot be read, has no lattices, ends early or goes on after the last; or a line is not
            what the format says. The message names file and line, and what was expected there.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "lattices.txt"
        >>> _ = path.write_text("1\\n2\\n0 3\\n0\\n1 0 7\\n")
        >>> read_lattices(path)
        [Lattice(tags=[0, 3], arcs=[(), (Arc(source=0, id=7),)])]
    """
    lines = _Lines(path)
    (count,) = lines.take("the number of lattices, from 1 on", _is_count)
    numbers = tqdm(range(1, count + 1), "reading lattices", delay=1, leave=False, disable=None)
    lattices = [_read_lattice(lines, f"lattice {number} of {count}") for number in numbers]
    lines.close()
    return lattices


def write_lattices(path: str | os.PathLike[str], lattices: Iterable[Lattice]) -> None:
    """Write lattices so that `read_lattices` gives them back.

    Raises:
        EdBatchError: the file cannot be written.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "lattices.txt"
        >>> write_lattices(path, random_lattices(3, seed=0))
        >>> read_lattices(path) == random_lattices(3, seed=0)
        True
    """
    texts = [f"{lattice}\n\n" for lattice in lattices]
    write_atomically(path, f"{len(texts)}\n{''.join(texts)}")


class _Lines:
    """The lines of a file that are not blank, one after the other, as integers."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path
        lines = read_text(path).split("\n")
        self.end = len(lines) + (lines[-1] != "")
        self.lines = ((number, line) for number, line in enumerate(lines, start=1) if line.strip())

    def take(self, expected: str, fits: Callable[[list[int]], bool]) -> list[int]:
        """The next line, which must be what was `expected`."""
        number, line = next(self.lines, (self.end, None))
        if line is not None and _INTEGERS.fullmatch(line):
            integers = [int(part) for part in line.split()]
            if fits(integers):
                return integers
        raise self.error(number, expected, line)

    def close(self) -> None:
        """There must be no further line."""
        for number, line in self.lines:
            raise self.error(number, "nothing after the last lattice", line)

    def error(self, number: int, expected: str, line: str | None) -> EdBatchError:
        found = "the end" if line is None else repr(clipped(line.strip()))
        return EdBatchError(f"{self.path}:{number}: expected {expected}, found {found}")


def _read_lattice(lines: _Lines, name: str) -> Lattice:
    (nodes,) = lines.take(f"the number of nodes of {name}, from 1 on", _is_count)
    tags = lines.take(f"the {nodes} tags of {name}", lambda found: len(found) == nodes)
    arcs = []
    for node in range(nodes):

        def fits(found: list[int], node: int = node) -> bool:
            arcs, sources = found[0], found[1::2]
            return len(found) == 1 + 2 * arcs and (arcs > 0) == (node > 0) and all(source < node for source in sources)

        what = (
            f"'k source id ...' with the arcs to node {node}, from nodes before it,"
            if node
            else "'0', no arcs to node 0,"
        )
        found = lines.take(f"{what} of {name}", fits)
        arcs.append(tuple(map(Arc, found[1::2], found[2::2])))
    return Lattice(tags, arcs)


def _is_count(found: list[int]) -> bool:
    return len(found) == 1 and found[0] > 0


# A made-up language: words of two characters, and longer ones that begin or end with these, so that words lie in words.
CHARACTERS = 80
KINDS = 4  # of words, and so of tags: 0 is a word that is no name


def _made_up_words() -> dict[tuple[int, ...], int]:
    """Words by their characters, numbered from 1."""
    random = Random(0)

    def character() -> int:
        return 1 + int(CHARACTERS * random.random())

    words: list[tuple[int, ...]] = [(character(), character()) for _ in range(120)]
    begun = [(*word, character()) for word in words[:60]]
    ended = [(character(), *word) for word in words[40:80]]
    joined = [(*a, *b) for a, b in zip(words[:40], words[60:100], strict=True)]
    words += [*begun, *ended, *joined]
    return {word: number for number, word in enumerate(dict.fromkeys(words), start=1)}


def random_lattices(n: int, seed: int) -> list[Lattice]:
    """`n` made-up lattices of 5 to 80 characters, with about one word for two of them, and tags that can be learned.

    The tag of a node is the kind of the longest word that ends there, and 0 where none does; a word's kind is the
    rest of its number divided by four. All seeds share one language. Equal seeds give equal lattices, in every version
    of Python; fewer lattices are the first of more.

    Example:
        >>> print(random_lattices(1, seed=206)[0])
        6
        0 0 0 2 0 0
        0
        1 0 32
        1 1 20
        3 2 59 1 52 0 190
        1 3 72
        1 4 15
    """
    words = _made_up_words()
    known = list(words)
    random = Random(seed)
    return [_lattice(random, words, known) for _ in range(n)]


def _lattice(random: Random, words: dict[tuple[int, ...], int], known: list[tuple[int, ...]]) -> Lattice:
    length = 5 + int(76 * random.random())
    text: list[int] = []
    while len(text) < length:
        # random() alone is promised to be the same in every version of Python.
        if random.random() < 0.45:
            text += known[int(len(known) * random.random())]
        else:
            text.append(1 + int(CHARACTERS * random.random()))
    del text[length:]
    lattice = Lattice([0], [()])
    for node, character in enumerate(text, start=1):
        arcs, tag = [Arc(node - 1, character)], 0
        for source in range(node - 2, max(node - 5, -1), -1):
            if number := words.get(tuple(text[source:node])):
                arcs.append(Arc(source, number))
                tag = number % KINDS  # the longest comes last
        lattice.tags.append(tag)
        lattice.arcs.append(tuple(arcs))
    return lattice
