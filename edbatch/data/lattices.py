"""Lattices of characters and words with a tag at every node, and made-up ones."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from edbatch.base.files import write_atomically
from edbatch.data.lines import clipped
from edbatch.data.stream import Line, Stream, attempt
from edbatch.data.stream import lines as lines_of
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


def stream_lattices(path: str | os.PathLike[str], skip_bad: bool = False) -> Stream[Lattice]:
    """The lattices of a file, one at a time; file and errors as of `read_lattices`.

    Args:
        skip_bad: skip lattices with a malformed line, up to the next blank line, and count them (`.skipped`). Without
            a first line that says how many there are, nothing is read.
    """
    return Stream(_lattices(path), "lattices", f"{path}: no lattices in it", skip_bad)


def read_lattices(path: str | os.PathLike[str], skip_bad: bool = False) -> list[Lattice]:
    """Read a file of lattices.

    First their number, on a line of its own. Then per lattice: the number of nodes; their tags on one line; and a line
    per node, `k source id source id ...`: the number of arcs that end there, and of each arc where it begins and what
    it is. Blank lines are skipped, and with `skip_bad` malformed lattices up to the next blank line.

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
    return stream_lattices(path, skip_bad).take()


def write_lattices(path: str | os.PathLike[str], lattices: Iterable[Lattice]) -> None:
    """Write lattices so that `read_lattices` gives them back.

    Raises:
        EdBatchError: the file cannot be written.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "lattices.txt"
        >>> lattices = [Lattice([0, 1], [(), (Arc(0, 7),)]), Lattice([2], [()])]
        >>> write_lattices(path, lattices)
        >>> read_lattices(path) == lattices
        True
    """
    texts = [f"{lattice}\n\n" for lattice in lattices]
    write_atomically(path, f"{len(texts)}\n{''.join(texts)}")


class _Lines:
    """The lines of a file that are not blank, one after the other, as integers."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path
        self.ended = False
        self._lines = lines_of(path)
        self._last: Line | None = None
        self._number = 0  # of the last line that was read
        self._after_blank = self._again = False
        self._taken = 0  # of this lattice

    def begin(self) -> None:
        """What is taken next begins a lattice."""
        self._taken = 0

    def take(self, expected: str, fits: Callable[[list[int]], bool]) -> list[int]:
        """The next line, which must be what was `expected`."""
        line = self._next()
        self._taken += 1
        text = None if line is None else line.text
        if text is not None and _INTEGERS.fullmatch(text):
            integers = [int(part) for part in text.split()]
            if fits(integers):
                return integers
        raise self._error(expected, text)

    def recover(self) -> None:
        """After an error, go to where the next lattice may begin: behind a blank line."""
        if self._after_blank and self._taken > 1:
            self._again = True  # the malformed lattice ended before this line
            return
        for line in self._lines:
            self._number = line.number
            if line.is_blank:
                return
        self.ended = True

    def close(self) -> None:
        """There must be no further line."""
        if (line := self._next()) is not None:
            raise self._error("nothing after the last lattice", line.text)

    def _next(self) -> Line | None:
        if self._again:
            self._again = False
            return self._last
        self._after_blank = False
        for line in self._lines:
            self._number = line.number
            if not line.is_blank:
                self._last = line
                return line
            self._after_blank = True
        self._number, self.ended = self._number + 1, True
        return None

    def _error(self, expected: str, text: str | None) -> EdBatchError:
        found = "the end" if text is None else repr(clipped(text.strip()))
        return EdBatchError(f"{self.path}:{self._number}: expected {expected}, found {found}")


def _lattices(path: str | os.PathLike[str]) -> Iterator[Lattice | EdBatchError]:
    lines = _Lines(path)
    (count,) = lines.take("the number of lattices, from 1 on", _is_count)
    for number in range(1, count + 1):
        lattice = attempt(_read_lattice, lines, f"lattice {number} of {count}")
        yield lattice
        if isinstance(lattice, EdBatchError):
            lines.recover()
            if lines.ended:
                return
    if error := attempt(lines.close):
        yield error


def _read_lattice(lines: _Lines, name: str) -> Lattice:
    lines.begin()
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
