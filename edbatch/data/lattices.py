"""Lattices of characters and words with a tag at every node.

A file begins with their number, on a line of its own. Then per lattice: the number of nodes; their tags on one line;
and a line per node, `k source id source id ...`: the number of arcs that end there, and of each arc where it begins and
its id. What is malformed ends at the next blank line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from edbatch.base.files import write_atomically
from edbatch.data.stream import Line, Path, attempt, clipped, file_format, lines
from edbatch.errors import EdBatchError

__all__ = ["Arc", "Lattice", "Sizes", "read_lattices", "sizes", "stream_lattices", "write_lattices"]

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


class _Rows:
    """The lines of a file as integers."""

    def __init__(self, path: Path) -> None:
        self._path, self._lines = path, lines(path)
        self._number = 0  # of the last line that was read
        self._line: Line | None = None  # None: the end

    def integers(self, begins: bool = False) -> list[int]:
        """The next line; nothing where it is malformed. Before one that `begins` a lattice, lines may be blank."""
        line = self.next(begins)
        return [int(part) for part in line.text.split()] if line and _INTEGERS.fullmatch(line.text) else []

    def count(self, what: str) -> int:
        """The next line, which is the number of something."""
        found = self.integers(begins=True)
        self.check(len(found) == 1 and found[0] > 0, f"the number of {what}, from 1 on")
        return found[0]

    def check(self, is_right: bool, expected: str) -> None:
        """Refuse the last line where it is not what was expected."""
        if not is_right:
            blank = "the end" if self._line is None else "a blank line"
            found = blank if not self._line or self._line.is_blank else repr(clipped(self._line.text.strip()))
            raise EdBatchError(f"{self._path}:{self._number}: expected {expected}, found {found}")

    def skip(self) -> bool:
        """Go to the next blank line; False where there is none."""
        while self._line and not self._line.is_blank:
            self.next()
        return self._line is not None

    def next(self, begins: bool = False) -> Line | None:
        """The next line, None at the end."""
        while True:
            self._number += 1
            self._line = next(self._lines, None)
            if not (begins and self._line and self._line.is_blank):
                return self._line


def _lattices(path: Path) -> Iterator[Lattice | EdBatchError]:
    rows = _Rows(path)
    count = rows.count("lattices")
    for number in range(1, count + 1):
        lattice = attempt(_read_lattice, rows, f"lattice {number} of {count}")
        yield lattice
        if isinstance(lattice, EdBatchError) and not rows.skip():
            return
    if error := attempt(rows.check, rows.next(begins=True) is None, "nothing after the last lattice"):
        yield error


def _read_lattice(rows: _Rows, name: str) -> Lattice:
    nodes = rows.count(f"nodes of {name}")
    lattice = Lattice(rows.integers(), [()])
    rows.check(len(lattice) == nodes, f"the {nodes} tags of {name}")
    rows.check(rows.integers() == [0], f"'0', no arcs to node 0, of {name}")
    for node in range(1, nodes):
        k, *found = rows.integers() or [0]
        fits = len(found) == 2 * k > 0 and all(source < node for source in found[::2])
        rows.check(fits, f"'k source id ...' with the arcs to node {node}, from nodes before it, of {name}")
        lattice.arcs.append(tuple(map(Arc, found[::2], found[1::2])))
    return lattice


stream_lattices, read_lattices, _ = file_format(_lattices, "lattices", "one at least")


def write_lattices(path: Path, lattices: Iterable[Lattice]) -> None:
    """Write lattices, with a blank line after each."""
    texts = [f"{lattice}\n\n" for lattice in lattices]
    write_atomically(path, f"{len(texts)}\n{''.join(texts)}")
