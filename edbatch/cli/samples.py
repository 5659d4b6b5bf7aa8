"""Samples of a model by name: of files, or made up; with labels, to learn from; and a model that was saved."""

from __future__ import annotations

import argparse
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from edbatch.base.files import read_text
from edbatch.base.later import Later
from edbatch.cli.arguments import MADE_UP
from edbatch.errors import EdBatchError

if TYPE_CHECKING:
    from edbatch.models.workloads import Labelled, Workload

workloads = Later("edbatch.models.workloads")

HELD_OUT = 10  # without --held-out, one sample in so many is measured on
CHECKPOINT, VOCABULARY = "checkpoint.safetensors", "vocabulary.json"  # in the folder of a run


class Found(NamedTuple):
    """Samples, and what was malformed beside them; fields as of `edbatch.data.stream.Stream`."""

    samples: list[Any]
    skipped: int = 0
    first_skipped: str | None = None


class Data(NamedTuple):
    """Samples to learn from and to measure on, what a network needs to be made, and what tells them from others."""

    train: list[Labelled]
    held_out: list[Labelled]
    sizes: tuple[Any, ...]
    labels: int
    skipped: int
    unlabelled: int
    mark: int
    known: dict[str, Any]


class Saved(msgspec.Struct):
    """A model in a folder: its name, the size of its states, and words, labels and sizes, as of `Workload.know`."""

    model: str
    hidden: int
    known: dict[str, Any]


def read_samples(workload: Workload, arguments: argparse.Namespace, option: str = "data") -> Found:
    """What the command line names, or what is made up.

    Raises:
        EdBatchError: files cannot be read, or one is malformed.
    """
    paths, limit = getattr(arguments, option), arguments.limit if option == "data" else None
    if paths is None:
        return Found(workload.generate(limit or MADE_UP, 0))
    try:
        stream = workload.open_files(*paths, skip_bad=arguments.skip_bad)
    except EdBatchError as error:
        raise EdBatchError(f"--{option.replace('_', '-')} of {arguments.model}: {error}") from None
    return Found(stream.take(limit), stream.skipped, stream.first_skipped)


def read_labelled(arguments: argparse.Namespace) -> tuple[Workload, Data]:
    """The workload that a command line names, and its samples with labels.

    Raises:
        EdBatchError: there is no such workload, or files cannot be read, or have no labels.
    """
    workload = workloads.get_workload(arguments.model)
    if workload.right is None:
        known = ", ".join(name for name, other in workloads.WORKLOADS.items() if other.right)
        raise EdBatchError(f"the data of {arguments.model} have no labels to learn from; expected one of {known}")
    found, skipped, _ = read_samples(workload, arguments)
    if arguments.held_out:
        held_out, more, _ = read_samples(workload, arguments, "held_out")
        skipped += more
    else:
        found, held_out = [x for i, x in enumerate(found) if i % HELD_OUT], found[::HELD_OUT]
    mark = 0
    for sample in (*found, *held_out):  # not the files: a pipe is read once
        mark = zlib.crc32(repr(sample).encode(), mark)
    train, measured_on = ([x for x in some if workload.right(x) is not None] for some in (found, held_out))
    if not train or not measured_on:
        what = "to measure on" if train else "to learn from"
        raise EdBatchError(f"{arguments.model}: expected {workload.noun}s with labels {what}, got none")
    known = workload.know(train + measured_on)
    samples, numbered = workload.labelled(train + measured_on, known)
    unlabelled, at = len(found) + len(held_out) - len(samples), len(train)
    labels = len(numbered.labels)
    return workload, Data(samples[:at], samples[at:], numbered.sizes, labels, skipped, unlabelled, mark, known)


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
