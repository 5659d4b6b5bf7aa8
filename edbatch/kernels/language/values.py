"""The values of a kernel where its code has come to, and where they are read and written; in either language."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from edbatch.kernels.language.analysis import analysis_of
from edbatch.kernels.language.code import ZERO, Code, Value, whole
from edbatch.kernels.language.given import given_of
from edbatch.kernels.language.ir import (
    NEXT,
    RUN,
    SAME,
    Access,
    Compute,
    Constant,
    Count,
    Index,
    Integer,
    Kernel,
    Load,
    Reduce,
    Store,
    StoreLargest,
    Whole,
)


class Values:
    """What both writers of kernels are: loops, or threads, are their own.

    Args:
        kernel: what is written.
        code: its lines.
        given: the words that it is given, see `given`.
    """

    code: Any  # see `Code`

    def __init__(self, kernel: Kernel, code: Code, given: list[Value]) -> None:
        self.kernel, self.analysis, self.words = kernel, analysis_of(kernel), given_of(kernel)
        self.code, self.given, self.number = code, given, code.number
        self.largest = next((store for store in kernel.stores if isinstance(store, StoreLargest)), None)
        axes = range(kernel.axes)
        self.sizes = {axis: given[axis] for axis in axes if axis != kernel.list_axis}  # later that of lists, too
        self.index: dict[int, Value] = {}  # per axis whose loop this is in
        self.rows: dict[int, Value] = {}  # per place, where the row begins
        self.known: dict[int, Value] = {}  # values that have been computed in the loops around

    def row(self, place: int, row: Value) -> Value:
        """Where a row of a place begins."""
        raise NotImplementedError

    def entry_number(self) -> Value:
        """The number of this entry in its group."""
        raise NotImplementedError

    def places(self, elements: bool) -> Iterator[int]:
        """The places of rows, or of elements."""
        places = enumerate(self.kernel.places)
        return (number for number, place in places if place.elements == elements)

    def integers(self, i: Value) -> None:
        """Read the integers of row i."""
        code = self.code
        for number, step in enumerate(self.kernel.instructions):
            if isinstance(step, Integer):
                first = code.at_address("i32", self.given[self.words.integers + step.number])
                self.known[number] = code.named(self.index_at(first, i), f"v{number}")

    def index_at(self, array: Value, at: Value) -> Value:
        """An entry of a list of integers, as 64 bits."""
        return self.code.converted(self.code.load("i32", self.code.entry("i32", array, at)), "i64")

    def hoist(self, wanted: Iterable[int], axes: Iterable[int] = (), known: Iterable[int] = ()) -> None:
        """Compute all that wanted values are made of and that varies along none of the axes."""
        for value in sorted(self.analysis.closure(wanted, [*self.known, *known])):
            if not self.analysis.varies[value] & frozenset(axes):
                self.value(value)

    def value(self, number: int) -> Value:
        """The value of an instruction, here."""
        if number not in self.known:
            self.known[number] = self.code.named(self.computed(number), f"v{number}")
        return self.known[number]

    def computed(self, number: int) -> Value:
        """The value of an instruction that is not known."""
        code, step = self.code, self.kernel.instructions[number]
        match step:
            case Load(index=None):
                return code.load(self.number, self.place_of(step))
            case Load(index=int(index)):
                return code.load(self.number, self._further(step, self.place_of(step), self.value(index)))
            case Constant(text):
                return code.constant(float.fromhex(text))
            case Whole(column):
                return self.at_column(column)
            case Index(axis):
                return self.index[axis]
            case Count(axis):
                return self.sizes[axis]
            case Compute(function, operands):
                return code.applied(function, [self.value(operand) for operand in operands])
        raise AssertionError(f"{step} is known before")

    def reduction(self, number: int) -> Reduce:
        """The instruction of a reduction."""
        step = self.kernel.instructions[number]
        assert isinstance(step, Reduce)
        return step

    def at_column(self, number: int) -> Value:
        """What a column says."""
        return self.given[self.words.columns + number]

    def stride(self, access: Access, axis: int, kind: int) -> Value:
        """From one entry of an access to the next along an axis; after the last, along an index."""
        return self.given[self.words.stride(access, axis)] if kind == RUN else whole(kind)

    def place_of(self, access: Access, group: bool = False) -> Value:
        """Where the entry of an access is, or (`group`) the first of its group.

        Along the innermost axis last: the rest is known outside its loop.
        """
        code, total = self.code, whole(access.entry if isinstance(access, Load) else 0)
        array, vector = self.rows[access.place], self.analysis.vector_axis
        if access.column is not None:
            total = code.add(total, self.at_column(access.column))
        for axis in self.vector_last(range(self.kernel.outer if group else self.kernel.axes)):
            kind = access.strides[axis]
            if kind == SAME:
                continue
            step = code.multiply(self.index[axis], self.stride(access, axis, kind))
            if kind == NEXT and axis == vector:
                array, total = code.entry(self.number, array, total), step
            else:
                total = code.add(total, step)
        return code.entry(self.number, array, total)

    def vector_last(self, axes: Iterable[int]) -> list[int]:
        """In the order of loops."""
        vector = self.analysis.vector_axis
        return sorted(axes, key=lambda axis: (axis == vector, axis))

    def _further(self, access: Access, place: Value, index: Value) -> Value:
        """From the place of an access, what an index says further."""
        code, distance = self.code, self.stride(access, self.kernel.axes, access.along)
        return code.entry(self.number, place, code.multiply(code.converted(index, "i64"), distance))

    def of_largest(self) -> tuple[list[Value], list[Value]]:
        """Of `StoreLargest`, what is numbered and where numbers go (the first, and how far the next is); how many."""
        store, axis = self.largest, self.kernel.outer
        assert store is not None
        load = self.kernel.instructions[store.value]
        assert isinstance(load, Load)
        lists = [(self.place_of(one, group=True), self.stride(one, axis, one.strides[axis])) for one in (load, store)]
        return [value for one in lists for value in one], [self.sizes[axis], self.at_column(store.count)]

    def write(self, stores: list[Store]) -> None:
        """Stores, after all that they read is read."""
        for number in (number for store in stores for number in store.reads):
            self.value(number)
        values = [[self.known[number] for number in store.reads] for store in stores]
        numbers = [self.code.converted(value, self.number) for value, *_ in values]
        for store, number, (_, *index) in zip(stores, numbers, values, strict=True):
            self.put(store, number, *index)

    def put(self, store: Store, number: Value, index: Value = ZERO) -> None:
        """Write a number where a store says; `index`: the value that says how far."""
        code, place = self.code, self.place_of(store)
        put = code.add_to if store.add else code.store
        if store.index is None:
            put(number, place)
            return
        with code.when(code.applied("greater_equal", [index, ZERO])):
            put(number, self._further(store, place, index))
