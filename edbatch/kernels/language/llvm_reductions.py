"""Reductions in LLVM's language: what they keep while entries pass by; and the numbers of the largest entries."""

from __future__ import annotations

from dataclasses import dataclass

from edbatch.kernels.language.ir import Reduce
from edbatch.kernels.language.llvm_code import Code, Value, literal, whole
from edbatch.kernels.language.llvm_values import Values

_NONE = whole(2**63 - 1)  # more than the number of any entry


class Accumulator:
    """Of a reduction, in local variables: one, or one for each of the groups that are computed side by side."""

    def __init__(self, writer: Values, value: int, columns: int = 1) -> None:
        step = writer.kernel.instructions[value]
        assert isinstance(step, Reduce)
        self.function, self._of = step.function, step.value
        self._writer, self._columns = writer, columns
        code = writer.code
        self._type = {"sum": "double", "first": "i64"}.get(self.function, writer.number)
        self._total = code.local(self._type, columns)
        self._block = code.local(writer.number)  # of a sum
        self._nan = code.local("i32")  # of max and min, whether there was one

    def _place(self) -> Value:
        columns = self._columns > 1
        return self._writer.code.entry(self._type, self._total, self._writer.column) if columns else self._total

    def begin(self) -> None:
        """Before the first entry."""
        code = self._writer.code
        if self.function == "first":
            code.store(_NONE, self._place())
            return
        first = {"sum": 0.0, "max": float("-inf"), "min": float("inf")}[self.function]
        code.store(literal(first, self._type), self._place())
        if self.function != "sum" and self._columns == 1:
            code.store(Value("i32", "0"), self._nan)

    def begin_block(self) -> None:
        """Of a sum."""
        self._writer.code.store(literal(0.0, self._writer.number), self._block)

    def take(self) -> None:
        """An entry."""
        writer, code = self._writer, self._writer.code
        value = writer.value(self._of)
        if self.function == "first":
            found = code.select(code.converted(value, "i1"), writer.entry_number(), _NONE)
            code.store(code.smaller(found, code.load("i64", self._place())), self._place())
            return
        value = code.converted(value, writer.number)
        if self.function == "sum" and self._columns == 1:
            before = code.load(value.type, self._block)
            code.store(code.operation("fadd reassoc contract", before, value), self._block)
            return
        before = code.load(self._type, self._place())
        if self.function == "sum":
            result = code.operation("fadd", before, code.converted(value, "double"))
        elif self._columns > 1:
            name = {"max": "maximum", "min": "minimum"}[self.function]
            result = writer.calls.call(code, name, [before, value])
        else:
            # Without NaN, which is noted apart, LLVM knows that it may take the entries in any order.
            compare = {"max": "ogt", "min": "olt"}[self.function]
            test = code.operation(f"fcmp nnan nsz {compare}", value, before, "i1")
            result = code.select(test, value, before, "nnan nsz ")
            undefined = code.converted(code.operation("fcmp uno", value, value, "i1"), "i32")
            code.store(code.operation("or", code.load("i32", self._nan), undefined), self._nan)
        code.store(result, self._place())

    def end_block(self) -> None:
        """Of a sum."""
        code = self._writer.code
        block = code.converted(code.load(self._writer.number, self._block), "double")
        code.store(code.operation("fadd", code.load("double", self._total), block), self._total)

    def end(self) -> Value:
        """The result."""
        writer, code = self._writer, self._writer.code
        total = code.load(self._type, self._place())
        if self.function == "first":
            test = code.operation("icmp eq", total, _NONE, "i1")
            return code.select(test, whole(-1), total)
        if self.function != "sum" and self._columns == 1:
            test = code.converted(code.load("i32", self._nan), "i1")
            total = code.select(test, literal(float("nan"), total.type), total)
        return code.converted(total, writer.number)


@dataclass(frozen=True)
class Entries:
    """Numbers in memory.

    Args:
        code: that reads and writes them.
        type: "float" or "double".
        first: where the first is.
        step: from one to the next.
    """

    code: Code
    type: str
    first: Value
    step: Value

    def place(self, at: Value) -> Value:
        """Where an entry is."""
        return self.code.entry(self.type, self.first, self.code.multiply(at, self.step))

    def load(self, at: Value) -> Value:
        """An entry."""
        return self.code.load(self.type, self.place(at))


@dataclass(frozen=True)
class Heap:
    """Numbers of entries: each comes after the two below it, so that the last in the order is at the top.

    The largest are found in as many steps as there are entries, times the logarithm of k. The first k entries make a
    heap, where the result will be; each that comes later and is larger takes the place of the smallest. At last the
    smallest is taken off the heap again and again, and put behind what is left of it.

    Args:
        entries: what is numbered.
        numbers: in memory, as numbers of the kernel's dtype.
    """

    entries: Entries
    numbers: Entries

    def sort_largest(self, size: Value, count: Value) -> None:
        """Write the numbers of the `count` largest of `size` entries, the largest first."""
        code = self.entries.code
        half, top = code.operation("sdiv", count, whole(2)), code.add(count, whole(-1))
        with code.loop(count) as at:
            self._put(at, at)
        with code.loop(half) as at:
            place = code.operation("sub nsw", code.add(half, whole(-1)), at)
            self._sink(self._number(place), place, count)
        with code.loop(code.operation("sub nsw", size, count)) as at:
            number = code.add(at, count)
            is_larger = self._larger(self.entries.load(number), self.entries.load(self._number(whole(0))))
            with code.branch(whole(0), is_larger):
                self._sink(number, whole(0), count)
        with code.loop(top) as at:
            end = code.operation("sub nsw", top, at)
            last = self._number(end)
            self._put(end, self._number(whole(0)))
            self._sink(last, whole(0), end)

    def _number(self, place: Value) -> Value:
        return self.entries.code.converted(self.numbers.load(place), "i64")

    def _put(self, place: Value, number: Value) -> None:
        code = self.entries.code
        code.store(code.converted(number, self.numbers.type), self.numbers.place(place))

    def _larger(self, a: Value, b: Value) -> Value:
        code = self.entries.code
        return code.operation("and", code.operation("fcmp ugt", a, b, "i1"), code.operation("fcmp ord", b, b, "i1"))

    def _before(self, a: Value, b: Value) -> Value:
        """Whether entry number a comes before number b."""
        code = self.entries.code
        of_a, of_b = self.entries.load(a), self.entries.load(b)
        unless = code.operation("xor", self._larger(of_b, of_a), Value("i1", "true"))
        return code.select(code.operation("icmp slt", a, b, "i1"), unless, self._larger(of_a, of_b))

    def _sink(self, number: Value, place: Value, size: Value) -> None:
        """Put a number at a place of the heap, or below it, where what comes later goes up."""
        code = self.entries.code
        variable = code.local("i64")
        code.store(place, variable)
        with code.repeated() as leave:
            here = code.load("i64", variable)
            left = code.add(code.add(here, here), whole(1))
            leave(code.operation("icmp sge", left, size, "i1"))
            right = code.add(left, whole(1))
            with code.branch(left, code.operation("icmp slt", right, size, "i1")) as branch:
                branch.result = code.select(self._before(self._number(left), self._number(right)), right, left)
            below = self._number(branch.result)
            leave(self._before(below, number))
            self._put(here, below)
            code.store(branch.result, variable)
        self._put(code.load("i64", variable), number)
