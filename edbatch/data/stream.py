"""Samples of files of any size, one at a time, and what becomes of malformed ones."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby, islice
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from tqdm import tqdm

from edbatch.base.files import checked_path, write_atomically
from edbatch.errors import EdBatchError

Path: TypeAlias = str | os.PathLike[str]
WORD = re.compile(r"\S+", re.ASCII)  # a no-break space is part of a word

_Sample = TypeVar("_Sample")


class Stream(Generic[_Sample]):
    """An iterator over samples, each read when it is asked for: a file may be larger than memory.

    Args:
        found: samples, and in place of a malformed one its error.
        what: the samples are called.
        nothing: the message where there are none.
        skip_bad: malformed samples are skipped and counted (`skipped`; `first_skipped` is the message of the first of
            them, which names file and line); otherwise the first ends the reading, as an error.

    Example:
        >>> import pathlib, tempfile
        >>> from edbatch.data.trees import stream_trees
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "trees.txt"
        >>> _ = path.write_text("(3 (2 so) (4 good))\\n(3 so\\n(1 bad)\\n")
        >>> trees = stream_trees(path, skip_bad=True)
        >>> print(*trees, trees.skipped)
        (3 (2 so) (4 good)) (1 bad) 1
    """

    def __init__(self, found: Iterator[_Sample | EdBatchError], what: str, nothing: str, skip_bad: bool) -> None:
        self.skipped = 0
        self.first_skipped: str | None = None
        self._what = what
        self._good = self._without_bad(found, nothing, skip_bad)

    def __iter__(self) -> Iterator[_Sample]:
        return self

    def __next__(self) -> _Sample:
        return next(self._good)

    def _without_bad(self, found: Iterator[_Sample | EdBatchError], nothing: str, skip_bad: bool) -> Iterator[_Sample]:
        is_empty = True
        for sample in found:
            if not isinstance(sample, EdBatchError):
                is_empty = False
                yield sample
            elif not skip_bad:
                try:
                    raise sample
                finally:
                    del sample  # its traceback has this frame: as a circle they would keep the file open
            else:
                self.skipped += 1
                self.first_skipped = self.first_skipped or str(sample)
        if is_empty:
            why = f" ({self.skipped:,} malformed, the first: {self.first_skipped})" if self.skipped else ""
            raise EdBatchError(nothing + why)

    def take(self, n: int | None = None) -> list[_Sample]:
        """The next `n` samples, or as many as there are left; None: all that are left."""
        return list(tqdm(islice(self, n), f"reading {self._what}", delay=1, leave=False, disable=None))


class Line(NamedTuple):
    """A line of a file: its number, from 1 on, and its bytes, without what ends it."""

    path: Path
    number: int
    raw: bytes

    @property
    def place(self) -> str:
        """File and number, for messages."""
        return f"{self.path}:{self.number}"

    @property
    def is_blank(self) -> bool:
        """Whether there is nothing on it."""
        return not self.raw or self.raw.isspace()

    @property
    def text(self) -> str:
        """The text; an EdBatchError where it is no UTF-8."""
        try:
            return self.raw.decode()
        except UnicodeDecodeError as error:
            raise EdBatchError(f"{self.place}: not UTF-8 text (byte {error.start} of the line)") from None


def lines(path: Path) -> Iterator[Line]:
    """The lines of a file, one at a time."""
    try:
        with open(checked_path(path), "rb") as file:
            for number, raw in enumerate(file, start=1):
                yield Line(path, number, raw.rstrip(b"\r\n"))
    except OSError as error:
        raise EdBatchError(f"{path}: cannot be read ({error.strerror or error})") from error


def blocks(lines: Iterable[Line]) -> Iterator[Iterator[Line]]:
    """Lines in groups, each as far as the next blank line; a group ends when the next one is asked for."""
    return (block for is_blank, block in groupby(lines, lambda line: line.is_blank) if not is_blank)


def attempt(read: Callable[..., _Sample], *args: Any, **options: Any) -> _Sample | EdBatchError:
    """The result of `read`, or the error that it raises."""
    try:
        return read(*args, **options)
    except EdBatchError as error:
        return error


def by_line(parse: Callable[..., _Sample]) -> Callable[..., Iterator[_Sample | EdBatchError]]:
    """What reads a sample on every line of a file that is not blank, where `parse` makes one of a text and its place,
    for messages."""

    def sample(line: Line, **options: Any) -> _Sample:
        return parse(line.text, line.place, **options)

    return lambda path, **options: (attempt(sample, line, **options) for line in lines(path) if not line.is_blank)


def file_format(
    samples: Callable[..., Iterator[_Sample | EdBatchError]],
    what: str,
    expected: str,
    text: Callable[[_Sample], str] = str,
) -> tuple[Callable[..., Stream[_Sample]], Callable[..., list[_Sample]], Callable[..., None]]:
    """What streams, reads and writes a kind of file: functions `stream(path, skip_bad=False)`, `read`, with the same
    arguments, and `write(path, samples)`.

    Args:
        samples: reads a file: its samples, and in place of a malformed one its error.
        what: the samples are called.
        expected: what is said of a file without any.
        text: of a sample, without the end of its last line.
    """

    def stream(path: Path, skip_bad: bool = False, **options: Any) -> Stream[_Sample]:
        """The samples of a file, each read when it is asked for; blank lines between them are skipped, and with
        `skip_bad` malformed samples. Options as of what parses one of the kind, if it has any."""
        return Stream(samples(path, **options), what, f"{path}: no {what} in it; expected {expected}", skip_bad)

    def read(path: Path, skip_bad: bool = False, **options: Any) -> list[_Sample]:
        """All samples of a file; arguments and errors as of the stream of them."""
        return stream(path, skip_bad, **options).take()

    def write(path: Path, found: Iterable[_Sample]) -> None:
        """Write a file of samples that can be read again."""
        write_atomically(path, "".join(f"{text(sample)}\n" for sample in found))

    return stream, read, write


def clipped(text: str) -> str:
    """The first 40 characters of a text, to be shown in a message."""
    return text if len(text) <= 40 else f"{text[:40]}..."
