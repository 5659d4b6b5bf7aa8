"""The programs of a type table side by side, as the interpreter reads them when it runs whole mini-batches."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from edbatch.compiling.compiled import compiled
from edbatch.kernels.program import (
    ARGUMENT_OF,
    EXTENT,
    NONE,
    POSITION,
    SLOT,
    STEP,
    TASK,
    Extent,
    Task,
)
from edbatch.kernels.tables import Programs
from edbatch.runtime.compile.link import Tables
from edbatch.runtime.compile.list_program import ListProgram
from edbatch.runtime.compile.program import Program, Variant

_versions = itertools.count()
_PARTS = {
    "slots": SLOT,
    "arguments": ARGUMENT_OF,
    "steps": STEP,
    "places": POSITION,
    "kernels": np.dtype(np.int64),
    "addresses": np.dtype(np.int64),
}


class ProgramTable:
    """Programs of types.

    Attributes:
        tables: as compiled loops read them.
        version: another one whenever these change.
    """

    tables: Programs
    version: int

    def __init__(self) -> None:
        self._variants: dict[int, Variant | ListProgram] = {}
        self._tables: dict[int, Tables] = {}
        self._seen: set[int] = set()
        self._changed = False  # since the programs were joined
        self._join(0)

    def prepare(self, kinds: Iterable[int], table: Any) -> list[Any]:
        """Have the programs of these types ready.

        Args:
            table: a `TypeTable`, or what has its `count` and `program`.

        Returns:
            Arrays of parameters, to be held while the programs run: another thread may let go of a model.

        Raises:
            EdBatchError: a parameter is gone.
        """
        held: list[Any] = []
        for kind in kinds:
            variant = self._variants.get(kind)
            if variant is None:
                if kind in self._seen:
                    continue
                program = table.program(kind)
                if program is None:
                    self._seen.add(kind)
                    continue
                variant = self._variants[kind] = program.variant()
            tables = self._tables.get(kind)
            while tables is None or (arrays := tables.held()) is None:
                # Noted first, and until they are joined: a later type may fail, and an interrupt come at any time.
                self._changed = True
                tables = self._tables[kind] = variant.tables()
            held += arrays
        if self._changed or len(self.tables.tasks) < table.count:
            self._join(table.count)
            self._changed = False
        return held

    def scratch(self, plan: Any) -> int:
        """Bytes of scratch that the largest of a plan's batches needs."""
        size: int = _scratch(plan.batches, plan.operands, self._sizes, self._list_widths, self._list_at)
        return size

    def runs_whole(self, batches: np.ndarray) -> bool:
        """Whether compiled loops run each of these batches in one piece."""
        kinds = batches["type"]
        programs = self.tables.tasks["program"][kinds]
        return bool(((programs < 0) | (batches["n"] <= self._sizes[kinds, 1])).all())

    def having(self, more: np.ndarray) -> Self:
        """The same programs, and the tasks of more types, which are no programs."""
        other = copy.copy(self)
        other.tables = self.tables._replace(tasks=np.concatenate([self.tables.tasks, more]))
        other._sizes = np.concatenate([self._sizes, np.zeros((len(more), 2), np.int64)])
        none = np.zeros(len(more), np.int64)
        other._list_widths = np.concatenate([self._list_widths, none])
        other._list_at = np.concatenate([self._list_at, none])
        return other

    def _join(self, types: int) -> None:
        begins = dict.fromkeys(_PARTS, 0)
        extents = []
        tasks = [Task(NONE)] * types
        # Per type of its program: bytes of scratch a call, calls at most.
        self._sizes = np.zeros((types, 2), np.int64)
        self._list_widths, self._list_at = np.zeros((2, types), np.int64)
        for number, (kind, tables) in enumerate(self._tables.items()):
            tasks[kind] = Task(number)
            ends = {part: begins[part] + len(getattr(tables, part)) for part in _PARTS}
            self._sizes[kind] = tables.itemsize * self._variants[kind].width, tables.calls
            if tables.lists >= 0:
                self._list_widths[kind] = tables.itemsize * self._variants[kind].element_width
                self._list_at[kind] = tables.lists
            extents.append(
                Extent(
                    begins["slots"], ends["slots"], begins["arguments"], ends["arguments"],
                    begins["steps"], ends["steps"], begins["addresses"], begins["kernels"], begins["places"],
                    tables.calls, tables.itemsize, tables.lists,
                )
            )  # fmt: skip
            begins = ends
        parts = {  # as bytes: to join records, NumPy compares the fields of all their types
            part: np.frombuffer(bytearray().join(getattr(t, part).tobytes() for t in self._tables.values()), dtype)
            for part, dtype in _PARTS.items()
        }
        self.tables = Programs(np.array(tasks, TASK), np.array(extents, EXTENT), **parts)
        self.version = next(_versions)


class DerivativePrograms(ProgramTable):
    """The programs of derivatives, numbered as they are first used."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers: dict[Program | ListProgram, int] = {}
        self._programs: list[Program | ListProgram] = []

    def number(self, program: Program | ListProgram) -> int:
        """The number of a program."""
        found = self._numbers.get(program)
        if found is None:
            self._programs.append(program)  # before its number is known: an interrupt leaves one that nobody uses
            found = self._numbers[program] = len(self._programs) - 1
        return found

    @property
    def count(self) -> int:
        """Of all programs."""
        return len(self._programs)

    def program(self, number: int) -> Program | ListProgram:
        """The program of a number."""
        return self._programs[number]


@compiled(small=True)
def _scratch(
    batches: np.ndarray, operands: np.ndarray, sizes: np.ndarray, list_widths: np.ndarray, list_at: np.ndarray
) -> int:
    most = 1
    for at in range(len(batches)):
        batch = batches[at]
        kind = batch["type"]
        size = sizes[kind, 0] * min(batch["n"], sizes[kind, 1])
        if list_widths[kind] > 0:
            size += list_widths[kind] * operands[batch["operand"] + list_at[kind]]["n"]
        most = max(most, size)
    return most
