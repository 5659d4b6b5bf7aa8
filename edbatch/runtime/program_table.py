"""The programs of a type table side by side, as the interpreter reads them when it runs whole mini-batches."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numba import njit

from edbatch.kernels.program import NONE, STEP_WIDTH, ListReduction
from edbatch.runtime.cell_link import Tables
from edbatch.runtime.cell_program import Program, Variant

_versions = itertools.count()
_PARTS = ("slots", "arguments", "steps", "places", "kernels", "addresses")
_WIDTHS = {"slots": 4, "arguments": 3, "steps": STEP_WIDTH, "places": 2, "kernels": 0, "addresses": 0}


class ProgramTable:
    """Programs of types that the interpreter runs without coming back to Python.

    Attributes:
        program_of: per type its program, -1 if it has none, for reductions of lists one of LISTS.
        programs: [., 10] see `kernels.interpreter.run_batches`.
        slots, arguments, steps, places, kernels, addresses: of all programs, one after the other.
        version: another one whenever any of these change.
    """

    version: int
    slots: np.ndarray
    arguments: np.ndarray
    steps: np.ndarray
    places: np.ndarray
    kernels: np.ndarray
    addresses: np.ndarray

    def __init__(self) -> None:
        self._variants: dict[int, Variant] = {}
        self._tables: dict[int, Tables] = {}
        self._seen: set[int] = set()
        self._lists: dict[int, ListReduction] = {}
        self.program_of = np.zeros(0, np.int64)
        self._sizes = np.zeros((0, 2), np.int64)  # per type of its program: entries of scratch a call, calls at most
        self._join()

    def prepare(self, kinds: Iterable[int], table: Any) -> None:
        """Have the programs of these types ready.

        Args:
            table: a `TypeTable`, or what has its `count`, `program` and `list_reduction`.

        Raises:
            EdBatchError: a parameter is gone.
        """
        changed = False
        for kind in kinds:
            variant = self._variants.get(kind)
            if variant is None:
                if kind in self._seen:
                    continue
                self._seen.add(kind)
                reduction = table.list_reduction(kind)
                if reduction is not None:
                    self._lists[kind] = reduction
                    changed = True
                program = table.program(kind)
                if program is None or not program.variant().is_native:
                    continue
                variant = self._variants[kind] = program.variant()
            tables = variant.tables()
            if self._tables.get(kind) is not tables:
                self._tables[kind] = tables
                changed = True
        if changed or len(self.program_of) < table.count:
            self.program_of = np.full(table.count, NONE, np.int64)
            self._join()

    def scratch(self, plan: Any) -> int:
        """Entries of scratch that the largest of a plan's batches needs."""
        entries: int = _scratch(plan.batches, plan.operands, self._sizes, self._list_widths)
        return entries

    def runs_whole(self, batches: np.ndarray) -> bool:
        """Whether compiled loops run all of these batches, each of them in one piece."""
        kinds = batches[:, 0]
        small = (self.program_of[kinds] < 0) | (batches[:, 2] <= self._sizes[kinds, 1])
        return bool((small & (self.program_of[kinds] != NONE)).all())

    def having(self, program_of: np.ndarray) -> Self:
        """The same programs, of more types: `program_of` begins as this table's."""
        other = copy.copy(self)
        other.program_of = program_of
        other._sizes = np.zeros((len(program_of), 2), np.int64)
        other._sizes[: len(self._sizes)] = self._sizes
        other._list_widths = np.zeros(len(program_of), np.int64)
        other._list_widths[: len(self._list_widths)] = self._list_widths
        return other

    def _join(self) -> None:
        begins = dict.fromkeys(_PARTS, 0)
        programs = []
        self._sizes = np.zeros((len(self.program_of), 2), np.int64)
        self._list_widths = np.zeros(len(self.program_of), np.int64)
        for kind, reduction in self._lists.items():
            self.program_of[kind] = reduction.program
            self._list_widths[kind] = reduction.width
        for number, (kind, tables) in enumerate(self._tables.items()):
            self.program_of[kind] = number
            ends = {part: begins[part] + len(getattr(tables, part)) for part in _PARTS}
            variant = self._variants[kind]
            self._sizes[kind] = variant.width, variant.rows
            programs.append(
                (
                    begins["slots"], ends["slots"], begins["arguments"], ends["arguments"],
                    begins["steps"], ends["steps"], begins["addresses"], variant.rows,
                    begins["kernels"], begins["places"],
                )
            )  # fmt: skip
            begins = ends
        self.programs = np.array(programs, np.int64).reshape(len(programs), 10)
        self.version = next(_versions)
        for part in _PARTS:
            shape = (0, _WIDTHS[part]) if _WIDTHS[part] else (0,)
            setattr(
                self,
                part,
                np.concatenate([np.zeros(shape, np.int64), *(getattr(t, part) for t in self._tables.values())]),
            )


class DerivativePrograms(ProgramTable):
    """The programs of derivatives, numbered as they are first used."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers: dict[Program, int] = {}
        self._programs: list[Program] = []

    def number(self, program: Program) -> int:
        """The number of a program."""
        found = self._numbers.setdefault(program, len(self._programs))
        if found == len(self._programs):
            self._programs.append(program)
        return found

    @property
    def count(self) -> int:
        """Of all programs."""
        return len(self._programs)

    def program(self, number: int) -> Program:
        """The program of a number."""
        return self._programs[number]

    @staticmethod
    def list_reduction(number: int) -> ListReduction | None:
        """None is any."""
        return None


@njit(cache=True)
def _scratch(batches: np.ndarray, operands: np.ndarray, sizes: np.ndarray, list_widths: np.ndarray) -> int:
    most = 1
    for kind, _, n, operand, _, _ in batches:
        most = max(most, sizes[kind, 0] * min(n, sizes[kind, 1]))
        if list_widths[kind] > 0:
            most = max(most, list_widths[kind] * operands[operand, 4])
    return most
