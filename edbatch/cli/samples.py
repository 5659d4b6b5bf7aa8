"""Samples of a model by name, of files or made up; and a model that was saved."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from edbatch.base.files import read_text
from edbatch.cli.arguments import Options, flag, number, option
from edbatch.errors import EdBatchError

if TYPE_CHECKING:
    from edbatch.models.workloads import Workload

MADE_UP = 300  # samples, where no file is given
CHECKPOINT, VOCABULARY = "checkpoint.safetensors", "vocabulary.json"  # in the folder of a run

MODEL: Options = {  # which model, over which samples
    "model": option("tree-lstm, tagger, ...", "MODEL"),
    "--data": option(f"samples (default: {MADE_UP} that are made up)", "FILE", nargs="+"),
    "--skip-bad": flag("skip malformed samples, and count them"),
    "--limit": number("take the first N samples of --data, or make up so many"),
    "--hidden": number("size of embeddings and states (default: 128; rntn 32, module-network 16)"),
    "--seed": number("of what is random", 0, least=0),
}


class Saved(msgspec.Struct):
    """A model in a folder: its name, the size of its states, and words, labels and sizes, as of `Workload.know`."""

    model: str
    hidden: int
    known: dict[str, Any]


def read_samples(workload: Workload, arguments: argparse.Namespace) -> list[Any]:
    """What the command line names, or what is made up."""
    if arguments.data is None:
        return workload.generate(arguments.limit or MADE_UP, 0)
    return workload.read(*arguments.data, skip_bad=arguments.skip_bad, limit=arguments.limit)


def read_saved(folder: Path, model: str) -> Saved:
    """What a folder says of its model, which must be the one of this name."""
    path = folder / VOCABULARY
    try:
        found = msgspec.json.decode(read_text(path), type=Saved)
    except (msgspec.DecodeError, RecursionError):
        raise EdBatchError(f"{path}: expected what edbatch train --save writes") from None
    if found.model != model:
        raise EdBatchError(f"{folder}: holds a {found.model}, not a {model}")
    return found


def print_heading(model: str, hidden: int, how: str, data: Sequence[str] | None, counts: str) -> None:
    """Print what a model is, how it is made, and over which samples it runs."""
    print(f"{model}, hidden size {hidden:,}, {how}\n{' '.join(data or ['made up'])}: {counts}")
