"""From steps to the tables that the interpreter reads: every value found in a slot, parameters by address."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary, ref

import numpy as np

from edbatch.base.records import records
from edbatch.graph.cell.body import Body, Value, parameter_in, spec_of_value
from edbatch.graph.cell.passes.entries import by_rows
from edbatch.graph.cell.trace import ARGUMENT
from edbatch.graph.node_type import parameter_array
from edbatch.graph.op import Kind
from edbatch.graph.spec import ParameterSpec, name_of
from edbatch.kernels import program
from edbatch.kernels.backend import Backend
from edbatch.kernels.language.analysis import analysis_of
from edbatch.kernels.language.ir import Kernel
from edbatch.kernels.program import ARGUMENT_OF, POSITION, RIGHT, SLOT, STEP, TRANSPOSED, Argument, Slot, Step
from edbatch.runtime.compile.places import RESULT, SAVED, Parts, Row
from edbatch.runtime.compile.steps import CellStep
from edbatch.runtime.compile.tables import Fixed, Tables

_ROWS = {RESULT: program.RESULT, SAVED: program.SAVED}


class Link:
    """Makes tables of a cell's steps.

    What is written to neither the result's rows nor the saved ones is an argument, too, after the body's.

    Args:
        begins, widths: as `place_values` finds them.
    """

    def __init__(
        self, body: Body, parts: Parts, begins: Mapping[int, int], widths: tuple[int, int], backend: Backend
    ) -> None:
        self.backend, self.dtype = backend, name_of(body.dtype)
        self._body, self._parts, self._begins, self._widths = body, parts, begins, widths
        self._slots: list[Slot] = []
        self._slot_of: dict[Any, int] = {}
        self._kernels: dict[Kernel, int] = {}
        self._place_list: list[tuple[int, int]] = []
        self._arrays: dict[Any, Any] = {}  # by the node or the parameter
        self._fixed: list[Any] = []  # those of slots
        self._constants: list[Any] = []
        self._parameters: list[tuple[ParameterSpec, ref[Any]]] = []

    def tables(self, steps: Sequence[CellStep], out: int, least: int) -> Tables:
        """Steps in order, as parameters lie now; the others: of `Tables`."""
        body = self._body
        encoded = [step.encode(self) for step in steps]
        arguments = self._arguments(steps, encoded)
        addresses = [self.backend.address(array) for array in self._fixed]
        handles = self.backend.handles([*self._kernels])
        return Tables(
            records(self._slots, SLOT),
            records(arguments, ARGUMENT_OF),
            records(encoded, STEP),
            records(self._place_list, POSITION),
            *self._widths,
            out,
            least,
            body.dtype.itemsize,
            next((at for at, spec in enumerate(body.arguments) if spec.each), -1),
            Fixed(handles, addresses, tuple(self._parameters), self._constants),
        )

    def _arguments(self, steps: Sequence[CellStep], encoded: Sequence[Step]) -> list[Argument]:
        body, homes = self._body, self._parts.homes
        read_as_rows = {value.node for value in body.outputs}
        used = set(homes)
        for step, record in zip(steps, encoded, strict=True):
            read = {operand.node for operand in step.operands}
            used |= read
            if record.code != program.KERNEL:
                read_as_rows |= read
        of_products = {
            step.x for step in encoded if step.code == program.MULTIPLY and step.flags & RIGHT and step.m == 1
        }
        arguments = []
        for number, spec in enumerate(body.arguments):
            slot = self._slot(number) if number in used else -1
            move = program.IF_SCATTERED if number in read_as_rows else program.UNLESS_FOLLOWED
            move = program.IF_NOT_ROWS if slot in of_products else move
            move = program.UNUSED if slot < 0 else program.ALWAYS if number in homes else move
            arguments.append(Argument(slot, spec.size, move, int(spec.each)))
        for (row, _), value in zip(self._parts.rows, body.outputs, strict=False):
            if row not in _ROWS:
                spec = spec_of_value(body, value)
                arguments.append(Argument(self.row(row), spec.size, program.UNLESS_FOLLOWED, int(spec.each)))
        return arguments

    def at(self, operand: Value) -> tuple[int, int]:
        """Slot and column of a value."""
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
            self._add(row, Slot(_ROWS.get(row, program.SCRATCH), 0, 0, 0))
        return self._slot_of[row]

    def numbers(self, numbers: Iterable[float]) -> tuple[int, int]:
        """Slot and column of a row of numbers."""
        row = number_row(numbers, self._body.dtype, self.backend)
        key = "numbers", id(row)
        if key not in self._arrays:
            self._arrays[key] = row
            self._constants.append(row)
        return self._fixed_slot(key), 0

    def matrix(self, spec: ParameterSpec, from_left: bool) -> tuple[int, int, int]:
        """Slot of a matrix, the distance between the rows in which it is stored, and TRANSPOSED or 0.

        Args:
            from_left: it is multiplied from the left (`W @ x`), so that what is stored by columns is [k, n].
        """
        array = self._array(spec)[0]
        (rows, columns), (down, right) = array.shape, (stride // array.itemsize for stride in array.strides)
        # The stride of an axis of length 1 says nothing.
        by_columns = columns == 1 or (down == 1 if rows > 1 else right != 1)
        inner, outer, stride = (rows, columns, right) if by_columns else (columns, rows, down)
        distance = max(inner, stride if outer > 1 else 0)
        return self._fixed_slot(spec), distance, 0 if by_columns == from_left else TRANSPOSED

    def kernel_step(
        self, kernel: Kernel, sizes: Sequence[int], places: Sequence[tuple[int, int]], words: Sequence[int],
        integers: Sequence[int] = (),
    ) -> Step:  # fmt: skip
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
        over = program.OVER_CALLS
        if lists is not None:
            over = program.OVER_ELEMENTS if lists < kernel.outer else program.OVER_LISTS
        sizes = [size if axis != lists else 1 for axis, size in enumerate(sizes)]
        groups = math.prod(sizes[: analysis.kernel.outer]) if analysis.grouped else 1
        entries = math.prod(sizes) // groups
        return Step(
            program.KERNEL, kernel=number, place=first, places=len(places), axes=len(sizes), words=len(words),
            integers=len(integers), groups=groups, entries=entries, scratch=analysis.scratch_rows,
            lanes=analysis.lanes(groups, entries), over=over,
        )  # fmt: skip

    def call_step(self, call: object, places: Sequence[tuple[int, int]]) -> Step:
        """The step that calls an object of Python, which somebody holds as long as there may be graphs."""
        first = len(self._place_list)
        self._place_list += [*places, (0, id(call))]
        return Step(program.CALL, place=first, places=len(places), words=1)

    def strides(self, operand: Value) -> tuple[int, ...]:
        """How the node that an operand shows is stored: entries between neighbours on each axis."""
        if not self._is_fixed(operand.node):
            return by_rows(self._body.nodes[operand.node].type.out.shape)
        array = self._array(self._owner(operand.node))
        return tuple(stride // array.itemsize for stride in array.strides[1:])

    def _is_fixed(self, node: int) -> bool:
        op = self._body.nodes[node].type.op
        return op.kind is Kind.SOURCE and op is not ARGUMENT

    def _slot(self, node: int) -> int:
        if self._is_fixed(node):
            return self._fixed_slot(self._owner(node))
        if node not in self._slot_of:
            whole, column = self._parts.whole(node)
            if isinstance(whole, str):
                slot = Slot(_ROWS.get(whole, program.SCRATCH), 0, column, 0)
            else:
                begin, out = self._begins[whole], self._body.nodes[whole].type.out
                slot = Slot(program.SCRATCH, begin, column, out.size)
                if out.each:
                    slot = slot._replace(place=self._widths[0], each=begin)
            self._add(node, slot)
        return self._slot_of[node]

    def _owner(self, node: int) -> Any:
        """Whose array a constant's node has: a parameter's, or its own."""
        return parameter_in(self._body.nodes, Value(node)) or node

    def _fixed_slot(self, of: Any) -> int:
        if of not in self._slot_of:
            self._add(of, Slot(program.FIXED, len(self._fixed), 0, 0))
            self._fixed.append(self._array(of))
        return self._slot_of[of]

    def _add(self, of: Any, slot: Slot) -> None:
        self._slot_of[of] = len(self._slots)
        self._slots.append(slot)

    def _array(self, of: Any) -> Any:
        """The array of a parameter, or of a constant's node."""
        if of not in self._arrays:
            if isinstance(of, ParameterSpec):
                array = parameter_array(of)
                self._parameters.append((of, ref(array)))
                self._arrays[of] = array[None]
            else:
                self._arrays[of] = self.backend.from_host(_constant(self._body.nodes[of]), "C")
                self._constants.append(self._arrays[of])
        return self._arrays[of]


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


def _constant(node: Any) -> Any:
    spec = node.type.out
    if node.value is not None:
        return np.ascontiguousarray(np.asarray(node.value, spec.dtype)[None])
    return np.full((1, *spec.shape), 1.0 if node.type.op.name == "ones" else 0.0, spec.dtype)
