"""Lines of text: written, and shown in messages."""

from __future__ import annotations

import os
from collections.abc import Iterable

from edbatch.base.files import write_atomically


def write_samples(path: str | os.PathLike[str], samples: Iterable[object]) -> None:
    """Write samples, as texts, one per line.

    Raises:
        EdBatchError: the file cannot be written.
    """
    write_atomically(path, "".join(f"{sample}\n" for sample in samples))


def clipped(text: str) -> str:
    """What an error shows of a text that was found: its first 40 characters."""
    return text if len(text) <= 40 else f"{text[:40]}..."
