"""Where rows begin, and what values are, in LLVM's language: kernels for the CPU, but for their loops."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from edbatch.kernels.language.analysis import COLUMNS, Analysis
from edbatch.kernels.language.given import PLACE, given_of
from edbatch.kernels.language.ir import (
    NEXT,
    RUN,
    SAME,
    Access,
    Compute,
    Constant,
    Count,
    Index,
    Kernel,
    Load,
    LoadAt,
    Store,
    StoreAt,
    Whole,
)
from edbatch.kernels.language.llvm_code import Code, Value, literal, whole
from edbatch.kernels.language.llvm_functions import Calls


class Values:
    """Values of a kernel where its code has come to."""

    def __init__(self, kernel: Kernel, analysis: Analysis) -> None:
        self.kernel, self.analysis = kernel, analysis
        self.number = "float" if kernel.dtype == "float32" else "double"
        self.code = Code()
        self.calls = Calls(self.number)
        self.given: list[Value] = []
        self.sizes: dict[int, Value] = {}  # per axis
        self.index: dict[int, Value] = {}  # per axis whose loop this is in
        self.first = whole(0)  # element of the row's list, counted through all lists
        self.rows: dict[int, Value] = {}  # per place, where the row begins
        self.known: dict[int, Value] = {}  # values that have been computed in the loops around
        self.arrays: dict[int, tuple[str, Value]] = {}  # type and place of values of groups computed side by side
        self.column = whole(0)  # among those
        self.stored: set[int] = set()  # kept values that a pass has computed

    def places(self, elements: bool) -> Iterator[int]:
        """The places of rows, or of elements."""
        places = enumerate(self.kernel.places)
        return (number for number, place in places if place.elements == elements and not place.once)

    def row(self, place: int, row: Value) -> Value:
        """Where a row begins."""
        code = self.code
        base, distance, listed = self.given[given_of(self.kernel).places + PLACE * place :][:PLACE]
        index = f"i{self.kernel.index_bits}"
        array = code.at_address(index, listed)
        with code.branch(row, code.operation("icmp ne", listed, whole(0), "i1")) as branch:
            branch.result = self.loaded_index(array, row)
        return code.at_address(self.number, code.add(base, code.multiply(branch.result, distance)))

    def loaded_index(self, array: Value, at: Value) -> Value:
        """An entry of a list of integers, as 64 bits."""
        index = f"i{self.kernel.index_bits}"
        return self.code.converted(self.code.load(index, self.code.entry(index, array, at)), "i64")

    def enter(self, axis: int, at: Value) -> None:
        """Begin the block of a loop along an axis."""
        self.index[axis] = at
        if axis == self.kernel.list_axis:
            element = self.code.add(self.first, at)
            self.rows |= {place: self.row(place, element) for place in self.places(elements=True)}

    def leave(self, axis: int, values: dict[int, Value]) -> None:
        """End it; `values`: what was known before."""
        del self.index[axis]
        self.known = values

    def hoist(self, wanted: Iterable[int], axes: Iterable[int]) -> None:
        """Compute all that wanted values are made of and that varies along none of the axes."""
        for value in sorted(self.analysis.closure(wanted, [*self.known, *self.arrays])):
            if not self.analysis.varies[value] & frozenset(axes):
                self.value(value)

    def vector_last(self, axes: Iterable[int]) -> list[int]:
        """In the order of loops."""
        vector = self.analysis.vector_axis
        return sorted(axes, key=lambda axis: (axis == vector, axis))

    def value(self, number: int) -> Value:
        """The value of an instruction, here."""
        if number in self.known:
            return self.known[number]
        code = self.code
        if number in self.arrays:
            type, array = self.arrays[number]
            found = code.load(type, code.entry(type, array, self.column))
        elif number in self.stored:
            found = code.load(self.number, self._scratch(number))
        else:
            found = self._computed(number)
            if number in self.analysis.kept:
                code.store(code.converted(found, self.number), self._scratch(number))
        self.known[number] = found
        return found

    def _computed(self, number: int) -> Value:
        code = self.code
        step = self.kernel.instructions[number]
        match step:
            case Load(place, strides):
                return code.load(self.number, self._at(step, place, strides))
            case LoadAt(place, strides, index, along):
                place_of = self._at(step, place, strides)
                return code.load(self.number, self._further(step, place_of, index, along))
            case Constant(text):
                return literal(float.fromhex(text), self.number)
            case Whole(column):
                return self.at_column(column)
            case Index(axis):
                return self.index[axis]
            case Count(axis):
                return self.sizes[axis]
            case Compute(function, operands):
                return self.calls.call(code, function, [self.value(operand) for operand in operands])
        raise AssertionError(f"{step} is known before")

    def at_column(self, number: int) -> Value:
        """What a column says."""
        return self.given[given_of(self.kernel).columns + number]

    def _further(self, access: LoadAt | StoreAt, place: Value, index: int, along: int) -> Value:
        """From the place of an access, what an index says further."""
        code, kernel = self.code, self.kernel
        distance = self.given[given_of(kernel).stride(access, kernel.axes)] if along == RUN else whole(1)
        at = code.multiply(code.converted(self.value(index), "i64"), distance)
        return code.entry(self.number, place, at)

    def _at(self, access: Access, place: int, strides: tuple[int, ...]) -> Value:
        """Where the entry of an access is; along the innermost axis last: the rest is known outside its loop."""
        code, total = self.code, whole(access.entry if isinstance(access, Load) else 0)
        array = self.rows[place]
        if access.column is not None:
            total = code.add(total, self.at_column(access.column))
        for axis in self.vector_last(range(self.kernel.axes)):
            if not strides[axis]:
                continue
            step = self.index[axis]
            if strides[axis] == RUN:
                step = code.multiply(step, self.given[given_of(self.kernel).stride(access, axis)])
            if strides[axis] == NEXT and axis == self.analysis.vector_axis:
                array, total = code.entry(self.number, array, total), step
            else:
                total = code.add(total, step)
        return code.entry(self.number, array, total)

    def group(self, access: Load | Store) -> Value:
        """Where the first entry of an access's group is."""
        outer = access.strides[: self.kernel.outer]
        return self._at(access, access.place, (*outer, *[SAME] * self.kernel.inner))

    def stride(self, access: Access, axis: int) -> Value:
        """From one entry of an access to the next along an axis."""
        kind = access.strides[axis]
        return self.given[given_of(self.kernel).stride(access, axis)] if kind == RUN else whole(kind)

    def entry_number(self) -> Value:
        """The number of this entry in its group."""
        total = whole(0)
        for axis in sorted(self.analysis.inner):
            total = self.code.add(self.code.multiply(total, self.sizes[axis]), self.index[axis])
        return total

    def _scratch(self, number: int) -> Value:
        """Where the value of this entry is kept."""
        code, kept = self.code, self.analysis.kept
        entries = whole(1)
        for axis in sorted(self.analysis.inner):
            entries = code.multiply(entries, self.sizes[axis])
        before = code.multiply(entries, whole(kept.index(number)))
        at = code.add(before, self.entry_number()) if kept.index(number) else self.entry_number()
        if self.analysis.columns:
            at = code.add(code.multiply(at, whole(COLUMNS)), self.column)
        address = self.given[given_of(self.kernel).scratch]
        return code.entry(self.number, code.at_address(self.number, address), at)

    def write(self, stores: list[Store]) -> None:
        """Stores, after all that they read is read."""
        code = self.code
        values = [code.converted(self.value(store.value), self.number) for store in stores]
        for number in (number for store in stores for number in store.reads):
            self.value(number)
        for store, value in zip(stores, values, strict=True):
            place = self._at(store, store.place, store.strides)
            if not isinstance(store, StoreAt):
                self._put(value, place, store.add)
                continue
            index = self.value(store.index)
            index = index if index.type == "i64" else code.converted(index, self.number)
            test = "icmp sge" if index.type == "i64" else "fcmp oge"
            is_there = code.operation(test, index, code.converted(Value("literal", "0"), index.type), "i1")
            with code.branch(whole(0), is_there):
                self._put(value, self._further(store, place, store.index, store.along), store.add)

    def _put(self, value: Value, place: Value, add: bool) -> None:
        code = self.code
        if add:
            value = code.operation("fadd contract", code.load(self.number, place), value)
        code.store(value, place)
