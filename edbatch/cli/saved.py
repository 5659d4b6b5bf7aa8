"""A model that `edbatch train` has saved: beside its checkpoint what is needed to make it again, for other data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from edbatch.base.files import read_text, write_atomically
from edbatch.errors import EdBatchError

CHECKPOINT, VOCABULARY = "checkpoint.safetensors", "vocabulary.json"


class Saved(NamedTuple):
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
        write_atomically(folder / VOCABULARY, json.dumps(self._asdict(), ensure_ascii=False, indent=1) + "\n")


def read_saved(folder: Path, model: str) -> Saved:
    """What a folder says of its model, which must be the one of this name.

    Raises:
        EdBatchError: it cannot be read, or is of another model.
    """
    path = folder / VOCABULARY
    try:
        found = Saved(**json.loads(read_text(path)))
        fits = isinstance(found.hidden, int) and isinstance(found.known, dict)
    except (TypeError, json.JSONDecodeError):
        fits = False
    if not fits:
        raise EdBatchError(f"{path}: expected what edbatch train --save writes")
    if found.model != model:
        raise EdBatchError(f"{folder}: holds a {found.model}; expected one, got {model}")
    return found
