"""Kernels for the CPU, in LLVM's language: void kernel(int64 first, int64 stop, int64 *given), see `given`.

They compute the rows from `first` on, up to `stop`, so that several threads can share one call.
Rows, and the groups of a row, follow one another. Without reductions each entry is a turn of the innermost loop, along
the axis where most entries are neighbours in memory. With reductions a group takes a few passes over its entries (see
`analysis`). Is the innermost loop over the entries of one group, a sum adds up blocks of BLOCK in the kernel's dtype,
side by side in a vector, and the blocks in float64. Is it over groups (columns of a matrix, entries of the rows of a
list), these are computed together, COLUMNS at a time, each by itself in float64. So a sum is exact to a few units, and
does not depend on what other rows there are.

Innermost loops are marked parallel: LLVM need not find out that stores do not touch what is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from edbatch.base.context_stack import contextmanager
from edbatch.kernels.language.analysis import COLUMNS, analysis_of
from edbatch.kernels.language.given import INTEGER, given_of
from edbatch.kernels.language.ir import (
    Integer,
    Kernel,
    Load,
    StoreLargest,
)
from edbatch.kernels.language.llvm_code import Value, pointer, whole
from edbatch.kernels.language.llvm_reductions import Accumulator, Entries, Heap
from edbatch.kernels.language.llvm_values import Values

BLOCK = 128


def source_of(kernel: Kernel) -> str:
    """The kernel as text, named @kernel."""
    return _Writer(kernel, analysis_of(kernel)).text()


class _Writer(Values):
    """Its loops."""

    def text(self) -> str:
        code = self.code
        given = Value(pointer("i64"), "%given")
        for word in range(given_of(self.kernel).words):
            self.given.append(code.load("i64", code.entry("i64", given, whole(word))))
        self.rows = {place: self.row(place, whole(0)) for place, kind in enumerate(self.kernel.places) if kind.once}
        for number, step in enumerate(self.kernel.instructions):
            if isinstance(step, Load) and step.place in self.rows and not any(step.strides):
                self.value(number)
        once = self.known
        begin = Value("i64", "%first")
        with code.loop(code.operation("sub nsw", Value("i64", "%stop"), begin)) as at:
            self.known = once.copy()
            self._of_row(code.add(begin, at))
        arguments = f"i64 %first, i64 %stop, {pointer('i64')} noalias %given"
        head = f'define void @kernel({arguments}) nounwind "prefer-vector-width"="512" {{'
        lines = [head, "entry:", *code.begin, *code.lines, "  ret void", "}", *code.metadata]
        return "\n".join([self.calls.text(), *lines, ""])

    # Rows and loops over axes

    def _of_row(self, i: Value) -> None:
        code, kernel = self.code, self.kernel
        for axis in range(kernel.axes):
            if axis != kernel.list_axis:
                self.sizes[axis] = self.given[axis]
        first = whole(0)
        if kernel.list_axis is not None:
            offsets = code.at_address(f"i{kernel.index_bits}", self.given[kernel.list_axis])
            first, end = (self.loaded_index(offsets, at) for at in (i, code.add(i, whole(1))))
            self.sizes[kernel.list_axis] = code.operation("sub nsw", end, first)
        self.first = first
        self.rows |= {place: self.row(place, i) for place in self.places(elements=False)}
        self.index = {}
        for number, step in enumerate(kernel.instructions):
            if isinstance(step, Integer):
                at = given_of(kernel).integers + INTEGER * step.number
                address = code.add(self.given[at], code.multiply(i, self.given[at + 1]))
                place = code.at_address(f"i{kernel.index_bits}", address)
                self.known[number] = self.loaded_index(place, whole(0))
        largest = next((store for store in kernel.stores if isinstance(store, StoreLargest)), None)
        if largest is not None:
            self._nest(sorted(self.analysis.outer), (), partial(self._largest, largest), parallel=False)
        elif not any(self.analysis.reductions):
            self._elementwise()
        elif self.analysis.columns:
            self._columns()
        else:
            self._groups()

    @contextmanager
    def _along(self, axis: int, parallel: bool) -> Iterator[None]:
        before = self.known.copy()
        with self.code.loop(self.sizes[axis], parallel, single=not self.kernel.long) as at:
            self.enter(axis, at)
            yield
        self.leave(axis, before)

    def _nest(self, axes: list[int], wanted: Iterable[int], body: Callable[[], None], parallel: bool = True) -> None:
        """Loops along axes, the last the innermost; of what is wanted, each value is computed where it is known."""
        wanted = [*wanted]
        self.hoist(wanted, axes)
        if not axes:
            body()
            return
        with self._along(axes[0], parallel and len(axes) == 1):
            self._nest(axes[1:], wanted, body, parallel)

    # The four shapes of kernels

    def _elementwise(self) -> None:
        analysis = self.analysis
        every = analysis.outer | analysis.inner
        for stores, axes in ((analysis.entry_stores, every), (analysis.group_stores, analysis.outer)):
            if stores:
                wanted = [value for store in stores for value in store.reads]
                self._nest(self.vector_last(axes), wanted, partial(self.write, stores), not analysis.ordered)

    def _largest(self, store: StoreLargest) -> None:
        load, axis = self.kernel.instructions[store.value], self.kernel.outer
        assert isinstance(load, Load)
        entries, numbers = (
            Entries(self.code, self.number, self.group(access), self.stride(access, axis)) for access in (load, store)
        )
        Heap(entries, numbers).sort_largest(self.sizes[axis], self.at_column(store.count))

    def _groups(self) -> None:
        """The innermost loop is over the entries of a group."""
        analysis = self.analysis
        before = [value for value in range(len(self.kernel.instructions)) if not analysis.is_entry(value)]
        reduced = [value for values in analysis.reductions for value in values]
        before = [value for value in before if not analysis.closure([value]) & set(reduced)]
        wanted = set(before) & analysis.closure(value for store in self.kernel.stores for value in store.reads)
        self._nest(sorted(analysis.outer), wanted, self._group, parallel=False)

    def _group(self) -> None:
        analysis = self.analysis
        self.stored = set()
        for number, reductions in enumerate(analysis.reductions):
            sums = {value: Accumulator(self, value) for value in reductions}
            for one in sums.values():
                one.begin()
            *around, axis = self.vector_last(analysis.inner)
            run = partial(self._blocks, axis, number, sums)
            self._nest(around, (), run, parallel=False)
            self.stored |= set(analysis.kept) & self._wanted(number)
            self.known |= {value: one.end() for value, one in sums.items()}
        self.write(analysis.group_stores)

    def _blocks(self, axis: int, number: int, sums: dict[int, Accumulator]) -> None:
        """The innermost loop over entries of a group; with sums in blocks."""
        code, size = self.code, self.sizes[axis]
        in_blocks = [one for one in sums.values() if one.function == "sum"]
        self.hoist(self.analysis.roots(number), [axis])

        def run(first: Value, end: Value) -> None:
            before = self.known.copy()
            with code.loop(end, parallel=not self.analysis.ordered, single=not sums) as at:
                self.enter(axis, code.add(first, at))
                self._entry(number, sums)
            self.leave(axis, before)

        if not in_blocks:
            run(whole(0), size)
            return
        rounded = code.operation("add nsw", size, whole(BLOCK - 1))
        with code.loop(code.operation("sdiv", rounded, whole(BLOCK))) as block:
            first = code.multiply(block, whole(BLOCK))
            for one in in_blocks:
                one.begin_block()
            run(first, code.smaller(code.operation("sub nsw", size, first), whole(BLOCK)))
            for one in in_blocks:
                one.end_block()

    def _entry(self, number: int, sums: dict[int, Accumulator]) -> None:
        for value in self.analysis.roots(number):
            self.value(value)
        for one in sums.values():
            one.take()
        if number == len(self.analysis.reductions) - 1:
            self.write(self.analysis.entry_stores)

    def _columns(self) -> None:
        """The innermost loop is over groups."""
        vector = self.analysis.vector_axis
        assert vector is not None
        around = sorted(self.analysis.outer - {vector})
        self._nest(around, (), lambda: self._chunks(vector), parallel=False)

    def _chunks(self, vector: int) -> None:
        code, analysis = self.code, self.analysis
        size = self.sizes[vector]
        rounded = code.operation("add nsw", size, whole(COLUMNS - 1))
        with code.loop(code.operation("sdiv", rounded, whole(COLUMNS))) as chunk:
            first = code.multiply(chunk, whole(COLUMNS))
            count = code.smaller(code.operation("sub nsw", size, first), whole(COLUMNS))
            self.stored, self.arrays = set(), {}
            for number, reductions in enumerate(analysis.reductions):
                sums = {value: Accumulator(self, value, COLUMNS) for value in reductions}
                each = partial(self._each_column, vector, first, count)
                each(lambda sums=sums: [one.begin() for one in sums.values()])  # type: ignore[misc]
                entry = partial(each, partial(self._entry, number, sums), analysis.roots(number))
                self._nest(sorted(analysis.inner), (), entry, parallel=False)
                self.stored |= set(analysis.kept) & self._wanted(number)
                each(partial(self._group_of_column, number, sums))
            self.arrays = {}

    def _each_column(
        self, vector: int, first: Value, count: Value, body: Callable[[], object], wanted: Iterable[int] = ()
    ) -> None:
        before = self.known.copy()
        self.hoist(wanted, [vector])
        with self.code.loop(count, parallel=not self.analysis.ordered, single=True) as column:
            self.column = column
            self.enter(vector, self.code.add(first, column))
            body()
        self.leave(vector, before)

    def _group_of_column(self, number: int, sums: dict[int, Accumulator]) -> None:
        """After a pass: what the next ones need of a group, in arrays; at last, its stores."""
        analysis, code = self.analysis, self.code
        for value, one in sums.items():
            self.known[value] = one.end()
        is_last = number == len(analysis.reductions) - 1
        needed = set() if is_last else analysis.closure(store.value for store in analysis.group_stores)
        for later in range(number + 1, len(analysis.reductions)):
            needed |= self._wanted(later)
        known = {value for value in needed if not analysis.is_entry(value) and analysis.closure([value]) & set(sums)}
        known = {value for value in known if not analysis.closure([value]) & self._later(number)}
        arrays = {}
        for value in sorted(known):
            result = self.value(value)
            result = code.converted(result, self.number) if result.type == "i1" else result
            arrays[value] = result.type, code.local(result.type, COLUMNS)
            code.store(result, code.entry(*arrays[value], self.column))
        if is_last:
            self.write(analysis.group_stores)
        self.arrays |= arrays

    def _later(self, number: int) -> set[int]:
        return {value for values in self.analysis.reductions[number + 1 :] for value in values}

    def _wanted(self, number: int) -> set[int]:
        """All that a pass's values are made of."""
        known = [value for value in self.analysis.kept if value in self.stored]
        return self.analysis.closure(self.analysis.roots(number), known)
