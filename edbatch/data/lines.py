"""Files with one sample per line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TypeVar

from tqdm import tqdm

from edbatch.base.files import read_text, write_atomically
from edbatch.errors import EdBatchError

_Sample = TypeVar("_Sample")


def read_samples(
    path: str | os.PathLike[str], parse: Callable[[str, str], _Sample], what: str, such_as: str
) -> list[_Sample]:
    """The samples of a file; blank lines are skipped.

    Args:
        parse: makes a sample of a line, given its place for error messages.
        what: they are called.
        such_as: one of them.

    Raises:
        EdBatchError: the file cannot be read, or holds no sample; and what `parse` raises.
    """
    lines = tqdm(read_text(path).split("\n"), f"reading {what}", unit=" lines", delay=1, leave=False, disable=None)
    found = [parse(line, f"{path}:{number}") for number, line in enumerate(lines, start=1) if line.strip()]
    if not found:
        raise EdBatchError(f"{path}: no {what} in it; expected one per line, such as {such_as}")
    return found


def write_samples(path: str | os.PathLike[str], samples: Iterable[object]) -> None:
    """Write samples, as texts, one per line.

    Raises:
        EdBatchError: the file cannot be written.
    """
    write_atomically(path, "".join(f"{sample}\n" for sample in samples))


def clipped(text: str) -> str:
    """What an error shows of a text that was found: its first 40 characters."""
    return text if len(text) <= 40 else f"{text[:40]}..."
