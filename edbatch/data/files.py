"""What reads and writes a kind of file, and small sample files of every kind, which come with EdBatch: in the folder
`SAMPLES`, `trees.txt` (300 trees), and 50 each of `tagged.txt`, `dependencies.conllu`, `source.txt` with its
translation `target.txt`, `lattices.txt` and `programs.jsonl`.
"""

from __future__ import annotations

import os
import pathlib
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias, TypeVar

from tqdm import tqdm

from edbatch.base.files import checked_path, write_atomically
from edbatch.errors import EdBatchError, warn

Path: TypeAlias = str | os.PathLike[str]
SAMPLES = pathlib.Path(__file__).parent / "samples"
WORD = re.compile(r"\S+", re.ASCII)  # a no-break space is part of a word

_Sample = TypeVar("_Sample")
_Group = TypeVar("_Group")


class Line(NamedTuple):
    """A line of a file: file and number, from 1 on, for messages, and its bytes."""

    place: str
    raw: bytes

    @property
    def is_blank(self) -> bool:
        """Whether there is nothing on it."""
        return not self.raw.strip()

    @property
    def text(self) -> str:
        """The text; an EdBatchError where it is no UTF-8."""
        try:
            return self.raw.decode()
        except UnicodeDecodeError as error:
            raise EdBatchError(f"{self.place}: not UTF-8 text (byte {error.start} of the line)") from None


def lines(path: Path) -> Iterator[Line]:
    """The lines of a file, one at a time, without what ends them."""
    try:
        with open(checked_path(path), "rb") as file:
            for number, raw in enumerate(file, start=1):
                yield Line(f"{path}:{number}", raw.rstrip(b"\r\n"))
    except OSError as error:
        raise EdBatchError(f"{path}: cannot be read ({error.strerror or error})") from error


def blocks(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """Lines in groups, between blank ones."""
    return (list(block) for is_blank, block in groupby(lines, lambda line: line.is_blank) if not is_blank)


def read_samples(
    groups: Iterable[_Group],
    parse: Callable[[_Group], _Sample],
    what: str,
    nothing: str,
    skip_bad: bool = False,
    limit: int | None = None,
) -> list[_Sample]:
    """What is parsed of each group of lines; arguments as of `file_format`, and of what it gives.

    Raises:
        EdBatchError: there are none: the message is `nothing`; or one is malformed.

    Warns:
        EdBatchWarning: malformed samples were skipped; it says how many, and what is wrong with the first.
    """
    found: list[_Sample] = []
    bad: list[str] = []
    for group in tqdm(groups, f"reading {what}", delay=1, leave=False, disable=None):
        if len(found) == limit:
            break
        try:
            found.append(parse(group))
        except EdBatchError as error:
            if not skip_bad:
                raise
            bad.append(str(error))
    if bad:
        warn(f"skipped {len(bad):,} malformed of {len(bad) + len(found):,} {what}; the first: {bad[0]}")
    if not found:
        raise EdBatchError(nothing)
    return found


def file_format(
    parse: Callable[..., _Sample],
    what: str,
    expected: str,
    groups: Callable[[Path], Iterator[list[Line]]] | None = None,
) -> tuple[Callable[..., list[_Sample]], Callable[[Path, Iterable[_Sample]], None]]:
    """What reads and writes a kind of file: functions `read(path, skip_bad=False, limit=None)` and `write(path,
    samples)`.

    Args:
        parse: makes a sample of a line: of its text and its place, for messages; or of a group of `Line`s.
        what: the samples are called.
        expected: what is said of a file without any.
        groups: of the lines of a file, each of which is a sample, as `blocks` gives; else every line that is not blank
            is one. A sample's `str` is what is written, and the end of a line.
    """

    def read(path: Path, skip_bad: bool = False, limit: int | None = None) -> list[_Sample]:
        """All samples of a file, or the first `limit`; blank lines between them are skipped, and with `skip_bad`
        malformed samples, with a warning that says how many there were."""
        found: Iterator[Any] = groups(path) if groups else (line for line in lines(path) if not line.is_blank)
        one = parse if groups else lambda line: parse(line.text, line.place)
        return read_samples(found, one, what, f"{path}: no {what} in it; expected {expected}", skip_bad, limit)

    def write(path: Path, samples: Iterable[_Sample]) -> None:
        """Write a file of samples that can be read again."""
        write_atomically(path, "".join(f"{sample}\n" for sample in samples))

    return read, write
