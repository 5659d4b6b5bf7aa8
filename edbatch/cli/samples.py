"""Samples of a model by name: of files, or made up; with labels, to learn from; and a model that was saved."""

from __future__ import annotations

import argparse
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from edbatch.base.files import read_text
from edbatch.base.later import Later
from edbatch.cli.arguments import JSON, Options, flag, number, option
from edbatch.errors import EdBatchError

if TYPE_CHECKING:
    from edbatch.models.workloads import Labelled, Workload

workloads = Later("edbatch.models.workloads")

MADE_UP = 300  # samples, where no file is given
HELD_OUT = 10  # without --held-out, one sample in so many is measured on
CHECKPOINT, VOCABULARY = "checkpoint.safetensors", "vocabulary.json"  # in the folder of a run

MODEL: Options = {  # which model, over which samples
    "model": option("tree-lstm, tagger, ...", "MODEL"),
    "--data --trees": option(f"samples (default: {MADE_UP} that are made up)", "FILE", nargs="+"),
    "--skip-bad": flag("skip malformed samples, and count them"),
    "--limit": number("take the first N samples of --data, or make up so many"),
    "--hidden": number("size of embeddings and states (default: 128; rntn 32, module-network 16)"),
    "--seed": number("of what is random", 0, least=0),
    **JSON,
}


class Data(NamedTuple):
    """Samples to learn from and to measure on, what a network needs to be made, and what tells them from others."""

    train: list[Labelled]
    held_out: list[Labelled]
    sizes: tuple[Any, ...]
    known: dict[str, Any]
    mark: int
    facts: dict[str, Any]  # counts


class Saved(msgspec.Struct):
    """A model in a folder: its name, the size of its states, and words, labels and sizes, as of `Workload.know`."""

    model: str
    hidden: int
    known: dict[str, Any]


def read_samples(workload: Workload, arguments: argparse.Namespace, option: str = "data") -> list[Any]:
    """What the command line names, or what is made up."""
    paths, limit = getattr(arguments, option), arguments.limit if option == "data" else None
    if paths is None:
        return workload.generate(limit or MADE_UP, 0)
    return workload.read(*paths, skip_bad=arguments.skip_bad, limit=limit)


def read_labelled(arguments: argparse.Namespace) -> tuple[Workload, Data]:
    """The workload that a command line names, and its samples with labels."""
    workload = workloads.get_workload(arguments.model)
    if workload.right is None:
        known = ", ".join(name for name, other in workloads.WORKLOADS.items() if other.right)
        raise EdBatchError(f"the data of {arguments.model} have no labels to learn from; expected one of {known}")
    found = read_samples(workload, arguments)
    if arguments.held_out:
        held_out = read_samples(workload, arguments, "held_out")
    else:
        found, held_out = [x for i, x in enumerate(found) if i % HELD_OUT], found[::HELD_OUT]
    mark = 0
    for sample in (*found, *held_out):  # not the files: a pipe is read once
        mark = zlib.crc32(repr(sample).encode(), mark)
    train, measured_on = ([x for x in some if workload.right(x) is not None] for some in (found, held_out))
    if not train or not measured_on:
        what = "to measure on" if train else "to learn from"
        raise EdBatchError(f"{arguments.model}: expected {workload.noun}s with labels {what}, got none")
    known, n = workload.know(train + measured_on), len(train)
    samples, numbered = workload.labelled(train + measured_on, known)
    facts = {
        "samples": n,
        "held_out": len(samples) - n,
        "without_labels": len(found) + len(held_out) - len(samples),
        "labels": len(numbered.labels),
    }
    return workload, Data(samples[:n], samples[n:], numbered.sizes, known, mark, facts)


def read_saved(folder: Path, model: str) -> Saved:
    """What a folder says of its model, which must be the one of this name."""
    path = folder / VOCABULARY
    try:
        found = msgspec.json.decode(read_text(path), type=Saved)
    except (msgspec.DecodeError, RecursionError):
        raise EdBatchError(f"{path}: expected what edbatch train --save writes") from None
    if found.model != model:
        raise EdBatchError(f"{folder}: holds a {found.model}; expected one, got {model}")
    return found


def print_heading(facts: dict[str, Any], how: str, counts: str) -> None:
    """Print what a model is, how it is made, and over which samples it runs."""
    print(f"{facts['model']}, hidden size {facts['hidden']:,}, {how}")
    print(f"{' '.join(facts['data'] or ['made up'])}: {counts}")
