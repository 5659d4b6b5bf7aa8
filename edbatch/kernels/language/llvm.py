"""Kernels for the CPU, in LLVM's language: void kernel(int64 first, stop, given, scratch), see `given`.

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
from edbatch.kernels.language.analysis import COLUMNS
from edbatch.kernels.language.code import Value, whole
from edbatch.kernels.language.given import PLACE, given_of
from edbatch.kernels.language.ir import Kernel, Load
from edbatch.kernels.language.llvm_code import pointer
from edbatch.kernels.language.llvm_functions import Calling
from edbatch.kernels.language.llvm_reductions import Accumulator, Largest
from edbatch.kernels.language.values import Values

BLOCK = 128


def source_of(kernel: Kernel) -> str:
    """The kernel as text, named @kernel."""
    code = Calling("float" if kernel.dtype == "float32" else "double")
    words = range(given_of(kernel).words)
    given = [code.load("i64", code.entry("i64", Value(pointer("i64"), "%given"), whole(word))) for word in words]
    return _Writer(kernel, code, given).text()


class _Writer(Values):
    """Its loops."""

    code: Calling

    def text(self) -> str:
        code, kernel = self.code, self.kernel
        self.first = whole(0)  # element of the row's list, counted through all lists
        self.column = whole(0)  # of the groups that are computed side by side
        self.arrays: dict[int, tuple[str, Value]] = {}  # type and place of values of these
        self.stored: set[int] = set()  # kept values that a pass has computed
        self.rows = {place: self.row(place, whole(0)) for place, kind in enumerate(kernel.places) if kind.once}
        for number, step in enumerate(kernel.instructions):
            if isinstance(step, Load) and step.index is None and step.place in self.rows and not any(step.strides):
                self.value(number)
        once = self.known
        begin = Value("i64", "%first")
        with code.loop(code.operation("sub nsw", Value("i64", "%stop"), begin)) as at:
            self.known = once.copy()
            self._of_row(code.add(begin, at))
        arguments = f"i64 %first, i64 %stop, {pointer('i64')} noalias %given, i64 %scratch"
        head = f'define void @kernel({arguments}) nounwind "prefer-vector-width"="512" {{'
        lines = [head, "entry:", *code.begin, *code.lines, "  ret void", "}", *code.metadata]
        return "\n".join([*code.definitions.values(), *lines, ""])

    # Rows and loops over axes

    def _of_row(self, i: Value) -> None:
        code, axis = self.code, self.kernel.list_axis
        if axis is not None:
            offsets = code.at_address("i32", self.given[axis])
            self.first, end = (self.index_at(offsets, at) for at in (i, code.add(i, whole(1))))
            self.sizes[axis] = code.operation("sub nsw", end, self.first)
        self._begin_rows(i, elements=False)
        self.integers(i)
        if self.largest is not None:
            self._nest(sorted(self.analysis.outer), (), self._sort, parallel=False)
        elif any(self.analysis.reductions):
            self._groups()
        else:
            self._elementwise()

    def row(self, place: int, row: Value) -> Value:
        code = self.code
        base, distance, listed = self.given[self.words.places + PLACE * place :][:PLACE]
        found = code.local("i64")
        code.store(row, found)
        with code.when(code.operation("icmp ne", listed, whole(0), "i1")):
            code.store(self.index_at(code.at_address("i32", listed), row), found)
        return code.at_address(self.number, code.add(base, code.multiply(code.load("i64", found), distance)))

    def _begin_rows(self, i: Value, elements: bool) -> None:
        places = [place for place in self.places(elements) if not self.kernel.places[place].once]
        self.rows |= {place: self.row(place, i) for place in places}

    @contextmanager
    def _along(self, axis: int, at: Value) -> Iterator[None]:
        """In the block of a loop along an axis."""
        before = self.known.copy()
        self.index[axis] = at
        if axis == self.kernel.list_axis:
            self._begin_rows(self.code.add(self.first, at), elements=True)
        yield
        del self.index[axis]
        self.known = before

    def _nest(self, axes: list[int], wanted: Iterable[int], body: Callable[[], None], parallel: bool = True) -> None:
        """Loops along axes, the last the innermost; of what is wanted, each value is computed where it is known."""
        wanted = [*wanted]
        self.hoist(wanted, axes, self.arrays)
        if not axes:
            body()
            return
        axis, innermost, single = axes[0], parallel and len(axes) == 1, not self.kernel.long
        with self.code.loop(self.sizes[axis], innermost, single) as at, self._along(axis, at):
            self._nest(axes[1:], wanted, body, parallel)

    def _elementwise(self) -> None:
        analysis = self.analysis
        every = analysis.outer | analysis.inner
        for stores, axes in ((analysis.entry_stores, every), (analysis.group_stores, analysis.outer)):
            if stores:
                wanted = [value for store in stores for value in store.reads]
                self._nest(self.vector_last(axes), wanted, partial(self.write, stores), not analysis.ordered)

    def _sort(self) -> None:
        places, numbers = self.of_largest()
        Largest(self.code, *places).sort(*numbers)

    # Groups: passes over their entries

    def _groups(self) -> None:
        analysis = self.analysis
        vector = analysis.vector_axis
        if not analysis.columns:
            reduced = {value for values in analysis.reductions for value in values}
            wanted = analysis.closure(value for store in self.kernel.stores for value in store.reads)
            wanted = {value for value in wanted if not analysis.is_entry(value)}
            wanted = {value for value in wanted if not analysis.closure([value]) & reduced}
            self._nest(sorted(analysis.outer), wanted, lambda: self._passes(self._once), parallel=False)
            return
        assert vector is not None

        def of_chunk(first: Value, end: Value) -> None:
            self._passes(partial(self._each_column, vector, first, end))

        chunks = partial(self._chunks, self.sizes[vector], COLUMNS, of_chunk)
        self._nest(sorted(analysis.outer - {vector}), (), chunks, parallel=False)

    def _chunks(self, size: Value, length: int, body: Callable[[Value, Value], None]) -> None:
        """A loop over parts of an axis: the first of each, and how many."""
        code = self.code
        rounded = code.operation("add nsw", size, whole(length - 1))
        with code.loop(code.operation("sdiv", rounded, whole(length))) as chunk:
            first = code.multiply(chunk, whole(length))
            body(first, code.smaller(code.operation("sub nsw", size, first), whole(length)))

    def _once(self, body: Callable[[], None], wanted: Iterable[int] = ()) -> None:
        body()

    def _each_column(
        self, vector: int, first: Value, end: Value, body: Callable[[], None], wanted: Iterable[int] = ()
    ) -> None:
        before = self.known.copy()
        self.hoist(wanted, [vector], self.arrays)
        parallel = not self.analysis.ordered
        with self.code.loop(end, parallel, single=True) as column, self._along(vector, self.code.add(first, column)):
            self.column = column
            body()
        self.known, self.column = before, whole(0)

    def _passes(self, each: Callable[..., None]) -> None:
        """The passes of a group, or of groups side by side; `each`: what is done for each of them."""
        analysis, columns = self.analysis, COLUMNS if self.analysis.columns else 1
        self.stored, self.arrays = set(), {}
        for number, reductions in enumerate(analysis.reductions):
            sums = {value: Accumulator(self.code, self.reduction(value).function, columns) for value in reductions}
            each(partial(self._begin, sums))
            if columns > 1:
                entry = partial(each, partial(self._entry, number, sums), analysis.roots(number))
                self._nest(sorted(analysis.inner), (), entry, parallel=False)
            else:
                *around, axis = self.vector_last(analysis.inner)
                self._nest(around, (), partial(self._blocks, axis, number, sums), parallel=False)
            self.stored |= set(analysis.kept) & self._wanted(number)
            each(partial(self._end, number, sums))
        self.arrays = {}

    def _begin(self, sums: dict[int, Accumulator]) -> None:
        for one in sums.values():
            one.begin(self.column)

    def _blocks(self, axis: int, number: int, sums: dict[int, Accumulator]) -> None:
        """The innermost loop over entries of a group; with sums in blocks."""
        code = self.code
        in_blocks = [one for one in sums.values() if one.function == "sum"]
        self.hoist(self.analysis.roots(number), [axis], self.arrays)

        def run(first: Value, end: Value) -> None:
            for one in in_blocks:
                one.begin_block()
            parallel = not self.analysis.ordered
            with code.loop(end, parallel, single=not sums) as at, self._along(axis, code.add(first, at)):
                self._entry(number, sums)
            for one in in_blocks:
                one.end_block()

        if in_blocks:
            self._chunks(self.sizes[axis], BLOCK, run)
        else:
            run(whole(0), self.sizes[axis])

    def _entry(self, number: int, sums: dict[int, Accumulator]) -> None:
        for value in self.analysis.roots(number):
            self.value(value)
        for value, one in sums.items():
            at = self.entry_number() if one.function == "first" else whole(0)
            one.take(self.value(self.reduction(value).value), at, self.column)
        if number == len(self.analysis.reductions) - 1:
            self.write(self.analysis.entry_stores)

    def _end(self, number: int, sums: dict[int, Accumulator]) -> None:
        """After a pass: what the next ones need of groups side by side, in arrays; at last, stores of groups."""
        analysis, code = self.analysis, self.code
        self.known |= {value: one.end(self.column) for value, one in sums.items()}
        if number == len(analysis.reductions) - 1:
            self.write(analysis.group_stores)
        elif analysis.columns:
            needed = analysis.closure(store.value for store in analysis.group_stores)
            needed = needed.union(*(self._wanted(later) for later in range(number + 1, len(analysis.reductions))))
            later = {value for values in analysis.reductions[number + 1 :] for value in values}
            arrays = {}
            for value in sorted(needed):
                made_of = analysis.closure([value])
                if not analysis.is_entry(value) and made_of & set(sums) and not made_of & later:
                    result = self.value(value)
                    result = code.converted(result, self.number) if result.type == "i1" else result
                    arrays[value] = result.type, code.local(result.type, COLUMNS)
                    code.store(result, code.entry(*arrays[value], self.column))
            self.arrays |= arrays

    def _wanted(self, number: int) -> set[int]:
        """All that a pass's values are made of."""
        known = [value for value in self.analysis.kept if value in self.stored]
        return self.analysis.closure(self.analysis.roots(number), known)

    # Values that a pass leaves to the next

    def computed(self, number: int) -> Value:
        code = self.code
        if number in self.arrays:
            type, array = self.arrays[number]
            return code.load(type, code.entry(type, array, self.column))
        if number in self.stored:
            return code.load(self.number, self._scratch(number))
        found = super().computed(number)
        if number in self.analysis.kept:
            code.store(code.converted(found, self.number), self._scratch(number))
        return found

    def entry_number(self) -> Value:
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
        at = code.add(code.multiply(entries, whole(kept.index(number))), self.entry_number())
        if self.analysis.columns:
            at = code.add(code.multiply(at, whole(COLUMNS)), self.column)
        return code.entry(self.number, code.at_address(self.number, Value("i64", "%scratch")), at)
