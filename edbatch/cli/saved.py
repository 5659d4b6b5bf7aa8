"""A model that `edbatch train` has saved: beside its checkpoint what is needed to make it again, for other data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from edbatch.base.files import read_text, write_atomically
from edbatch.errors import EdBatchError

CHECKPOINT, VOCABULARY = "checkpoint.safetensors", "vocabulary.json"


class Saved(msgspec.Struct):
    """What a folder says of its model.

    Attributes:
        model: its name.
        hidden: size of its states.
        known: words, labels and sizes, as of `Workload.know`.
    """

    model: str
    hidden: int
    known: dict[str, Any]

    def write(self, folder: Path) -> None:
        """Write it.

        Raises:
            EdBatchError: it cannot be written.
        """
        write_atomically(folder / VOCABULARY, msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n")


def read_saved(folder: Path, model: str) -> Saved:
    """What a folder says of its model, which must be the one of this name.

    Raises:
        EdBatchError: it cannot be read, or is of another model.
    """
    path = folder / VOCABULARY
    try:
        found = msgspec.json.decode(read_text(path), type=Saved)
    except (msgspec.DecodeError, RecursionError):
        raise EdBatchError(f"{path}: expected what edbatch train --save writes") from None
    if found.model != model:
        raise EdBatchError(f"{folder}: holds a {found.model}; expected one, got {model}")
    return found
