"""Labelled samples of `edbatch train`: of files, or made up; what is learned from and what is held out."""

from __future__ import annotations

import argparse
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

from edbatch.base.later import Later
from edbatch.errors import EdBatchError

if TYPE_CHECKING:
    from edbatch.models.workloads import Labelled, Workload

workloads = Later("edbatch.models.workloads")

MADE_UP = 300  # samples, where no file is given
HELD_OUT = 10  # without --held-out, one sample in so many is measured on


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


def trainable(name: str) -> Workload:
    """The workload of this name.

    Raises:
        EdBatchError: there is none, or its data have no labels.
    """
    workload = workloads.get_workload(name)
    if workload.right is None:
        known = ", ".join(name for name, other in workloads.WORKLOADS.items() if other.right)
        raise EdBatchError(f"the data of {name} have no labels to learn from; expected one of {known}")
    return workload


def read(workload: Workload, arguments: argparse.Namespace) -> Data:
    """What the command line names, or what is made up.

    Raises:
        EdBatchError: files cannot be read, or have no labels.
    """
    assert workload.right is not None
    skipped, held_out = 0, list[Any]()
    if arguments.data is None:
        n = arguments.limit or MADE_UP
        found = workload.generate(n, 0)
    else:
        found, skipped = _of_files(workload, "--data", arguments, arguments.limit)
        if arguments.held_out:
            held_out, more = _of_files(workload, "--held-out", arguments, None)
            skipped += more
    if not held_out:
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
    unlabelled = len(found) + len(held_out) - len(samples)
    at = len(train)
    return Data(samples[:at], samples[at:], numbered.sizes, len(numbered.labels), skipped, unlabelled, mark, known)


def _of_files(
    workload: Workload, option: str, arguments: argparse.Namespace, limit: int | None
) -> tuple[list[Any], int]:
    """Samples, and how many were malformed."""
    paths = arguments.data if option == "--data" else arguments.held_out
    try:
        stream = workload.open_files(*paths, skip_bad=arguments.skip_bad)
    except EdBatchError as error:
        raise EdBatchError(f"{option} of {arguments.model}: {error}") from None
    return stream.take(limit), stream.skipped
