"""From steps to the tables that the interpreter reads: every value found in a slot, parameters by address."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary, ref

import numpy as np

from edbatch.base.records import records
from edbatch.graph.cell.body import Body, Value, spec_of_value
from edbatch.graph.cell.passes.entries import by_rows
from edbatch.graph.cell.trace import ARGUMENT
from edbatch.graph.node_type import parameter_array
from edbatch.graph.op import Kind
from edbatch.graph.sources import PARAMETER
from edbatch.graph.spec import ParameterSpec, name_of
from edbatch.kernels.backend import Backend
from edbatch.kernels.language.analysis import Analysis, analysis_of
from edbatch.kernels.language.ir import Kernel
from edbatch.kernels.program import (
    ARGUMENT_OF,
    LEFT,
    POSITION,
    RIGHT,
    SLOT,
    TRANSPOSED,
    Argument,
    Code,
    Grouping,
    KernelStep,
    Move,
    Multiply,
    MultiplyEach,
    Over,
    Slot,
    Step,
    Storage,
    step_table,
)
from edbatch.runtime.compile.places import RESULT, SAVED, Parts, Place, Row
from edbatch.runtime.compile.steps import CellStep, Operand
from edbatch.runtime.compile.tables import Fixed, Tables

_ROWS: dict[Row, Storage] = {RESULT: Storage.RESULT, SAVED: Storage.SAVED}


@dataclass
class Link:
    """Makes tables, of a cell's steps in order; `widths`: of these, from `width` to `least`.

    What is written to neither the result's rows nor the saved ones is an argument, too, after the body's.
    """

    _body: Body
    _steps: list[CellStep]
    _parts: Parts
    _places: dict[int, Place]
    _widths: tuple[int, int, int, int]
    _backend: Backend

    @property
    def dtype(self) -> str:
        """Of all values, by name."""
        return name_of(self._body.dtype)

    def tables(self) -> Tables:
        """The program as parameters lie now."""
        body = self._body
        self._slots: list[Slot] = []
        self._slot_of: dict[Any, int] = {}
        self._kernels: dict[Any, int] = {}
        self._place_list: list[tuple[int, int]] = []
        self._fixed: list[Any] = []
        self._arrays: dict[Any, Any] = {}
        constants: list[int] = []
        self._rows: list[Any] = []  # of numbers
        self._parameters: list[tuple[ParameterSpec, ref[Any]]] = []
        self._as_rows: set[int] = set()
        for number, node in enumerate(body.nodes):
            if node.type.op is PARAMETER:
                self._array(number, node.type.attributes[0][1])
            elif node.type.op.kind is Kind.SOURCE and node.type.op is not ARGUMENT:
                self._arrays[number] = self._backend.from_host(_constant(node), "C")
                constants.append(number)
        steps: list[Step] = []
        read_as_rows = {value.node for value in body.outputs}
        for step in self._steps:
            for operand in step.operands:
                if isinstance(operand, ParameterSpec):
                    self._array(operand, operand)
            encoded = step.encode(self)
            check_product(encoded, self._slots)
            if isinstance(encoded, Multiply):
                self._as_rows.add(encoded.x)
            if encoded.code != Code.KERNEL:
                read_as_rows |= {operand.node for operand in step.operands if isinstance(operand, Value)}
            steps.append(encoded)
        used = {value.node for step in self._steps for value in step.operands if isinstance(value, Value)}
        used |= set(self._parts.homes)
        arguments = []
        for number, spec in enumerate(body.arguments):
            slot = self.at(Value(number))[0] if number in used else -1
            move = Move.IF_SCATTERED if number in read_as_rows else Move.UNLESS_FOLLOWED
            move = Move.IF_NOT_ROWS if slot in self._as_rows else move
            move = Move.UNUSED if slot < 0 else Move.ALWAYS if number in self._parts.homes else move
            arguments.append(Argument(slot, spec.size, move, int(spec.each)))
        for (row, _), value in zip(self._parts.rows, body.outputs, strict=False):
            if row not in _ROWS:
                spec = spec_of_value(body, value)
                arguments.append(Argument(self.row(row), spec.size, Move.UNLESS_FOLLOWED, int(spec.each)))
        held = [*(self._arrays[number] for number in constants if number in self._slot_of), *self._rows]
        addresses = [self._backend.address(array) for array in self._fixed]
        handles = self._backend.handles(list(self._kernels))
        fixed = Fixed(handles, addresses, tuple(self._parameters), held)
        del self._fixed, self._arrays, self._rows  # which are parameters' arrays, too
        return Tables(
            records(self._slots, SLOT),
            records(arguments, ARGUMENT_OF),
            step_table(steps),
            records(self._place_list, POSITION),
            *self._widths,
            body.dtype.itemsize,
            next((at for at, spec in enumerate(body.arguments) if spec.each), -1),
            fixed,
        )

    def at(self, operand: Operand) -> tuple[int, int]:
        """Slot and column of a value or a vector of parameters."""
        if isinstance(operand, ParameterSpec):
            return self._fixed_slot(operand), 0
        column = 0
        if operand.view is not None:
            column = operand.view.first if operand.view.contiguous else 0
        return self._slot(operand.node), column

    def result(self, column: int) -> tuple[int, int]:
        """Slot and column of the cell's result, with what is saved behind it."""
        row, column = self._parts.row(column)
        return self.row(row), column

    def row(self, row: Row) -> int:
        """Slot of what is written for a call."""
        if row not in self._slot_of:
            self._slot_of[row] = len(self._slots)
            self._slots.append(Slot(_ROWS.get(row, Storage.ARGUMENT), 0, 0, 0))
        return self._slot_of[row]

    def numbers(self, numbers: Iterable[float]) -> tuple[int, int]:
        """Slot and column of a row of numbers."""
        row = number_row(numbers, self._body.dtype, self._backend)
        key = "numbers", id(row)
        self._arrays[key] = row
        self._rows.append(row)
        return self._fixed_slot(key), 0

    def matrix(self, spec: ParameterSpec, from_left: bool) -> tuple[int, int, int]:
        """Slot of a matrix, the distance between the rows in which it is stored, and TRANSPOSED or 0.

        Args:
            from_left: it is multiplied from the left (`W @ x`), so that what is stored by columns is [k, n].
        """
        array = self._arrays[spec][0]
        (rows, columns), (down, right) = array.shape, (stride // array.itemsize for stride in array.strides)
        # The stride of an axis of length 1 says nothing.
        by_columns = columns == 1 or (down == 1 if rows > 1 else right != 1)
        inner, outer, stride = (rows, columns, right) if by_columns else (columns, rows, down)
        distance = max(inner, stride if outer > 1 else 0)
        return self._fixed_slot(spec), distance, 0 if by_columns == from_left else TRANSPOSED

    def kernel_step(
        self, kernel: Kernel, sizes: Sequence[int], places: Sequence[tuple[int, int]], words: Sequence[int],
        integers: Sequence[int] = (),
    ) -> KernelStep:  # fmt: skip
        """The step of a kernel.

        Args:
            places: slot and column of each; words: strides, then columns.
            integers: which of the calls' integers it takes.
        """
        first, lists = len(self._place_list), kernel.list_axis
        axes = [(0, size) if axis != lists else (-1, 0) for axis, size in enumerate(sizes)]
        self._place_list += [*places, *axes, *[(0, number) for number in (*words, *integers)]]
        analysis = analysis_of(kernel)
        number = self._kernels.setdefault(analysis.kernel, len(self._kernels))
        counts = len(places), len(sizes), len(words), len(integers)
        over = Over.CALLS if lists is None else Over.ELEMENTS if lists < kernel.outer else Over.LISTS
        sizes = [size if axis != lists else 1 for axis, size in enumerate(sizes)]
        groups = math.prod(sizes[: analysis.kernel.outer]) if analysis.grouped else 1
        entries = math.prod(sizes) // groups
        return KernelStep(number, first, *counts, groups, entries, analysis.scratch_rows, grouping(analysis), over)

    def call_step(self, call: object, places: Sequence[tuple[int, int]]) -> KernelStep:
        """The step that calls an object of Python, which somebody holds as long as there may be graphs."""
        first = len(self._place_list)
        self._place_list += [*places, (0, id(call))]
        return KernelStep(0, first, len(places), 0, 1, 0, 1, 1, 0, Grouping.NONE, code=Code.CALL)

    @property
    def backend(self) -> Backend:
        """Of the program."""
        return self._backend

    def strides(self, operand: Operand) -> tuple[int, ...]:
        """How the node that an operand shows, or a parameter, is stored: entries between neighbours on each axis."""
        array = self._arrays.get(operand.node if isinstance(operand, Value) else operand)
        if array is not None:
            return tuple(stride // array.itemsize for stride in array.strides[1:])
        assert isinstance(operand, Value)
        return by_rows(self._body.nodes[operand.node].type.out.shape)

    def _slot(self, node: int) -> int:
        if node not in self._slot_of:
            type = self._body.nodes[node].type
            if type.op.kind is Kind.SOURCE and type.op is not ARGUMENT:
                return self._fixed_slot(node)
            whole, column = self._parts.whole(node)
            if isinstance(whole, str):
                slot = Slot(_ROWS.get(whole, Storage.ARGUMENT), 0, column, 0)
            else:
                place = self._places[node]
                storage = Storage.ARGUMENT if type.op is ARGUMENT else Storage.SCRATCH
                slot = Slot(storage, place.begin, place.column, place.stride)
                if type.out.each:
                    slot = slot._replace(place=self._widths[0], each=place.begin)
            self._slot_of[node] = len(self._slots)
            self._slots.append(slot)
        return self._slot_of[node]

    def _fixed_slot(self, of: Any) -> int:
        if of not in self._slot_of:
            self._slot_of[of] = len(self._slots)
            self._slots.append(Slot(Storage.FIXED, len(self._fixed), 0, 0))
            self._fixed.append(self._arrays[of])
        return self._slot_of[of]

    def _array(self, of: Any, spec: ParameterSpec) -> None:
        if of not in self._arrays:
            array = parameter_array(spec)
            self._parameters.append((spec, ref(array)))
            self._arrays[of] = array[None]


def number_row(numbers: Iterable[float], dtype: np.dtype, backend: Backend) -> Any:
    """An array [1, k] of numbers that kernels read: one for all that read the same. It is not written to."""
    with np.errstate(over="ignore"):
        row = np.array([[*numbers]]).astype(dtype)
    key = backend, dtype, row.tobytes()
    found = _number_rows.get(key)
    if found is None:
        found = _number_rows[key] = backend.from_host(row, "C")
    return found


_number_rows: WeakValueDictionary[tuple[Backend, np.dtype, bytes], Any] = WeakValueDictionary()


def grouping(analysis: Analysis) -> Grouping:
    """How a GPU may share a group of a kernel's entries among threads."""
    if not analysis.grouped:
        return Grouping.NONE
    return Grouping.ORDERED if analysis.ordered else Grouping.COLUMNS if analysis.columns else Grouping.ENTRIES


def check_product(step: Step, slots: Sequence[Slot]) -> None:
    """Prove that a BLAS takes a product as it is encoded, whatever the number of calls; other steps pass.

    It is called by address, and refuses what does not fit without a word: the result would be what was there before.

    Raises:
        AssertionError: a size is 0 or no 32-bit integer, rows of a matrix overlap, or do not lie in their slot.
    """

    def expect(condition: bool, what: str) -> None:
        if not condition:
            raise AssertionError(f"a product that BLAS would refuse: {what}, in {step}")

    def rows_fit(slot: int, column: int, entries: int) -> None:
        storage, _, begin, stride, _ = slots[slot]
        expect(storage != Storage.FIXED, "a row for each call, all at one place")
        # An argument is moved to where its slot says, unless its rows lie as far apart by themselves.
        expect(storage in _ROWS.values() or begin + column + entries <= stride, "rows that overlap")

    if isinstance(step, Multiply):
        rows_fit(step.x, step.x_column, step.k)
        expect(slots[step.w].storage == Storage.FIXED, "a weight that is none")
        expect(step.distance >= (step.k if step.flags & TRANSPOSED else step.n), "rows of the weight that overlap")
        expect(min(step.k, step.n) > 0 and step.distance < 2**31, "sizes")
        rows_fit(step.out, step.out_column, step.n)
    elif isinstance(step, MultiplyEach):
        m, k, n, distance, flags = step.m, step.k, step.n, step.distance, step.flags
        expect(min(m, k, n) > 0 and max(m, k, n, distance) < 2**31, "sizes")
        inner, outer = (m, k) if flags & LEFT else (k, n)
        if flags & (LEFT | RIGHT):
            expect(distance >= (inner if flags & TRANSPOSED else outer), "rows of the parameter that overlap")
        expect(step.products > 0 and step.x_step in (0, m * k) and step.w_step in (0, k * n), "matrices that overlap")
        rows_fit(step.out, step.out_column, step.products * m * n)


def _constant(node: Any) -> Any:
    spec = node.type.out
    if node.value is not None:
        return np.ascontiguousarray(np.asarray(node.value, spec.dtype)[None])
    return np.full((1, *spec.shape), 1.0 if node.type.op.name == "ones" else 0.0, spec.dtype)
