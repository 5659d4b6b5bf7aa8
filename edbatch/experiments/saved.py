"""What was measured, in a file that is written after every point, so that a run that was interrupted can go on."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

import msgspec

import edbatch
from edbatch.base.files import read_text, write_atomically
from edbatch.errors import EdBatchError
from edbatch.experiments.experiment import Experiment, Point, Row, Setting
from edbatch.experiments.machine import machine

FORMAT = 1


class Done(msgspec.Struct, forbid_unknown_fields=True):
    """A point, its rows, and the seconds that it took."""

    point: Point
    rows: list[Row]
    seconds: float


class Measured(msgspec.Struct, forbid_unknown_fields=True):
    """An experiment: what it is, the paper's own numbers, marked as theirs, and what was measured here."""

    paper: str
    place: str
    shows: str
    theirs: list[Row]
    their_hardware: str
    points: list[Done]


class Saved(msgspec.Struct, forbid_unknown_fields=True):
    """All that a file holds."""

    edbatch_bench: int
    edbatch: str
    machine: dict[str, Any]
    date: str
    quick: bool
    data: str
    experiments: dict[str, Measured]


class Results:
    """What was measured so far, of one run or of several on the same machine.

    Args:
        setting: how experiments are run.
        path: the file; what it holds is not measured again. None: nothing is saved.

    Raises:
        EdBatchError: the file is malformed, cannot be written, or holds what was measured otherwise.
    """

    def __init__(self, setting: Setting, path: str | os.PathLike[str] | None = None) -> None:
        data = "made up" if setting.folder is None else str(setting.folder)
        date = datetime.now(UTC).isoformat(timespec="seconds")
        self._path = path
        self.saved = Saved(FORMAT, edbatch.__version__, machine(), date, setting.quick, data, {})
        if path is not None and os.path.exists(path) and os.path.getsize(path):
            self._go_on(_read(path))
        self._write()

    def rows(self, name: str) -> list[Row]:
        """All rows of an experiment."""
        measured = self.saved.experiments.get(name)
        return [] if measured is None else [row for done in measured.points for row in done.rows]

    def has(self, name: str, point: Point) -> bool:
        """Whether a point was measured."""
        measured = self.saved.experiments.get(name)
        return measured is not None and any(done.point == point for done in measured.points)

    def add(self, experiment: Experiment, point: Point, rows: list[Row], seconds: float) -> None:
        """Keep the rows of a point, and save.

        Raises:
            EdBatchError: the file cannot be written.
        """
        paper = experiment.paper
        new = Measured(
            f"{paper.name} ({paper.where})", experiment.place, experiment.shows, list(experiment.theirs),
            paper.hardware, [],
        )  # fmt: skip
        self.saved.experiments.setdefault(experiment.name, new).points.append(Done(point, rows, seconds))
        self._write()

    def _go_on(self, before: Saved) -> None:
        now = self.saved
        for what in ("edbatch", "quick", "data"):
            if getattr(before, what) != getattr(now, what):
                raise EdBatchError(
                    f"{self._path}: was measured with {what} {getattr(before, what)!r}, and this is with "
                    f"{getattr(now, what)!r}; expected another file, or the same"
                )
        for what in ("processor", "cores", "python", "numpy", "torch"):
            there, here = (found.machine.get(what, "missing") for found in (before, now))
            if there != here:
                raise EdBatchError(
                    f"{self._path}: was measured on another machine ({what} {there}, here {here}); "
                    "expected another file"
                )
        self.saved = before

    def _write(self) -> None:
        if self._path is not None:
            write_atomically(self._path, msgspec.json.format(msgspec.json.encode(self.saved), indent=1))


def _read(path: str | os.PathLike[str]) -> Saved:
    try:
        found = msgspec.json.decode(read_text(path), type=Saved)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise EdBatchError(f"{path}: no results of `edbatch bench` to go on from ({error})") from None
    if found.edbatch_bench != FORMAT:
        raise EdBatchError(f"{path}: results of format {found.edbatch_bench}; expected {FORMAT}")
    return found
