"""The programs of a type table side by side, as the interpreter reads them when it runs whole mini-batches."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable
from typing import Any, NamedTuple, Self

import numpy as np

from edbatch.base.records import record_type
from edbatch.compiling.compiled import compiled
from edbatch.compiling.directory import Directory, Told
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
from edbatch.kernels.tables import Programs, plan_in
from edbatch.memory.plan.format import Plan
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


class Size(NamedTuple):
    """The scratch that a type needs.

    Attributes:
        width: bytes for a call.
        calls: of a block, at most.
        list_width: bytes for an element of a list; 0: it reads none, or where they are.
        list_at: the operand that has the elements.
    """

    width: int
    calls: int
    list_width: int
    list_at: int


SIZE = record_type(Size._fields)


class ProgramTable:
    """Programs of types.

    Attributes:
        directory: of the tables, as compiled loops read them.
        version: another one whenever these change.
    """

    directory: Directory[Programs]
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
        if self._changed or len(self._sizes) < table.count:
            self._join(table.count)
            self._changed = False
        return held

    def scratch(self, plan: Told[Plan], first: int, stop: int) -> int:
        """Bytes of scratch that the largest of some batches of a plan needs."""
        size: int = _scratch(first, stop, plan.entries, self._sizes)
        return size

    def runs_whole(self, batches: np.ndarray) -> bool:
        """Whether compiled loops run each of these batches in one piece."""
        kinds = batches["type"]
        programs = self.directory.tables.tasks["program"][kinds]
        return bool(((programs < 0) | (batches["n"] <= self._sizes[kinds]["calls"])).all())

    def having(self, more: np.ndarray) -> Self:
        """The same programs, and the tasks of more types, which are no programs."""
        other = copy.copy(self)
        tables = self.directory.tables
        other.directory = Directory(tables._replace(tasks=np.concatenate([tables.tasks, more])))
        other._sizes = np.concatenate([self._sizes, np.zeros(len(more), SIZE)])
        return other

    def _join(self, types: int) -> None:
        begins = dict.fromkeys(_PARTS, 0)
        extents = []
        tasks = [Task(NONE)] * types
        sizes = [Size(0, 0, 0, 0)] * types
        for number, (kind, tables) in enumerate(self._tables.items()):
            tasks[kind] = Task(number)
            ends = {part: begins[part] + len(getattr(tables, part)) for part in _PARTS}
            variant, elements = self._variants[kind], 0
            if tables.lists >= 0:
                elements = tables.itemsize * variant.element_width
            sizes[kind] = Size(tables.itemsize * variant.width, tables.calls, elements, max(0, tables.lists))
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
        self.directory = Directory(Programs(np.array(tasks, TASK), np.array(extents, EXTENT), **parts))
        self._sizes = np.array(sizes, SIZE)
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
def _scratch(first: int, stop: int, plan_tables: np.ndarray, sizes: np.ndarray) -> int:
    plan, most = plan_in(plan_tables), 1
    for at in range(first, stop):
        batch = plan.batches[at]
        of = sizes[batch["type"]]
        size = of["width"] * min(batch["n"], of["calls"])
        if of["list_width"] > 0:
            size += of["list_width"] * plan.operands[batch["operand"] + of["list_at"]]["n"]
        most = max(most, size)
    return most
