"""Lattices of characters and words with a tag at every node.

A file begins with their number, on a line of its own. Then per lattice: the number of nodes; their tags on one line; a
line per node, `k source id source id ...`: the number of arcs that end there, and of each arc where it begins and its
id; and a blank line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from edbatch.base.files import write_atomically
from edbatch.data.draws import Draws
from edbatch.data.files import Line, Path, blocks, file_format, lines
from edbatch.errors import EdBatchError, shown

__all__ = ["Arc", "Lattice", "Sizes", "random_lattices", "read_lattices", "sizes", "write_lattices"]

_INTEGERS = re.compile(r"\s*[0-9]{1,9}(\s+[0-9]{1,9})*\s*", re.ASCII)


class Arc(NamedTuple):
    """An arc to a node: where it begins, and the number of a character, if that is just before, else of a word."""

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
    """The sizes of the tables that a model of these lattices needs."""
    most = [0, 0, 0]
    for lattice in lattices:
        most[2] = max(most[2], *lattice.tags)
        for node, arcs in enumerate(lattice.arcs):
            for source, id in arcs:
                kind = int(source < node - 1)
                most[kind] = max(most[kind], id)
    return Sizes(*(number + 1 for number in most))


def _integers(line: Line) -> list[int]:
    """The numbers on a line; none where it is malformed."""
    return [int(part) for part in line.text.split()] if _INTEGERS.fullmatch(line.text) else []


def _wrong(line: Line, expected: str) -> EdBatchError:
    return EdBatchError(f"{line.place}: expected {expected}, found {shown(line.text.strip())}")


def _lattices(path: Path) -> Iterator[list[Line]]:
    """The lines of each; their number at the beginning tells a file that was cut off."""
    rows, number = lines(path), 0
    first = next(rows, Line(f"{path}:1", b""))
    count = _integers(first)
    if len(count) != 1 or not count[0]:
        raise _wrong(first, "the number of lattices, from 1 on")
    for block in blocks(rows):
        number += 1
        yield block
    if number != count[0]:
        raise EdBatchError(f"{path}: expected {count[0]:,} lattices, as its first line says, found {number:,}")


def _lattice(block: list[Line]) -> Lattice:
    head, *rows = block
    numbers = _integers(head)
    if len(numbers) != 1 or len(rows) != numbers[0] + 1:
        raise _wrong(head, f"the number of nodes, one less than the {len(rows)} lines below it")
    lattice = Lattice(_integers(rows[0]), [])
    if len(lattice) != numbers[0]:
        raise _wrong(rows[0], f"the tags of {numbers[0]} nodes")
    for node, line in enumerate(rows[1:]):
        k, *found = _integers(line) or [-1]
        if len(found) != 2 * k or bool(k) != bool(node) or not all(source < node for source in found[::2]):
            arcs = "'k source id ...' with the arcs, from nodes before it," if node else "'0', no arcs"
            raise _wrong(line, f"{arcs} to node {node}")
        lattice.arcs.append(tuple(map(Arc, found[::2], found[1::2])))
    return lattice


read_lattices, _ = file_format(_lattice, "lattices", "one at least", _lattices)


def write_lattices(path: Path, lattices: Iterable[Lattice]) -> None:
    """Write lattices, with a blank line after each."""
    texts = [f"{lattice}\n\n" for lattice in lattices]
    write_atomically(path, f"{len(texts)}\n{''.join(texts)}")


# A made-up language: words of two characters, and longer ones that begin or end with these, so that words lie in words.
CHARACTERS = 80
KINDS = 4  # of words, and so of tags: 0 is a word that is no name


def _made_up_words() -> dict[tuple[int, ...], int]:
    """Words by their characters, numbered from 1."""
    draws = Draws(0)

    def character() -> int:
        return 1 + draws.below(CHARACTERS)

    words: list[tuple[int, ...]] = [(character(), character()) for _ in range(120)]
    begun = [(*word, character()) for word in words[:60]]
    ended = [(character(), *word) for word in words[40:80]]
    joined = [(*a, *b) for a, b in zip(words[:40], words[60:100], strict=True)]
    words += [*begun, *ended, *joined]
    return {word: number for number, word in enumerate(dict.fromkeys(words), start=1)}


def random_lattices(n: int, seed: int) -> list[Lattice]:
    """`n` lattices of 5 to 80 characters, with about one word for two of them, and tags that can be learned.

    Half have 22 to 61 characters, 42 on average; of the 1,147 of Weibo half have 22 to 58, 43 on average.

    The tag of a node is the kind of the longest word that ends there, and 0 where none does; a word's kind is the rest
    of its number divided by four. All seeds share one language.
    """
    words = _made_up_words()
    known = list(words)
    draws = Draws(seed)
    return [_made_up(draws, words, known) for _ in range(n)]


def _made_up(draws: Draws, words: dict[tuple[int, ...], int], known: list[tuple[int, ...]]) -> Lattice:
    length = 5 + draws.below(76)
    text: list[int] = []
    while len(text) < length:
        text += draws.one_of(known) if draws.chance(0.45) else [1 + draws.below(CHARACTERS)]
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
