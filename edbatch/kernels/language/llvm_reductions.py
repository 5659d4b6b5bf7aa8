"""Reductions in LLVM's language: what they keep while entries pass by; and the numbers of the largest entries."""

from __future__ import annotations

from dataclasses import dataclass

from edbatch.kernels.language.code import Value, whole
from edbatch.kernels.language.llvm_code import LLVM, literal

_NONE = whole(2**63 - 1)  # more than the number of any entry
_NEUTRAL = {"sum": 0.0, "max": float("-inf"), "min": float("inf")}


class Accumulator:
    """Of a reduction, in local variables: one, or one for each of the groups that are computed side by side.

    Args:
        code: its lines.
        function: see `ir.Reduce`.
        columns: how many groups are; of one, a sum adds up blocks.
    """

    def __init__(self, code: LLVM, function: str, columns: int) -> None:
        self.function = function
        self._code, self._single = code, columns == 1
        self._type = {"sum": "double", "first": "i64"}.get(function, code.number)
        self._total = code.local(self._type, columns)
        self._block = code.local(code.number)  # of a sum
        self._nan = code.local("i32")  # of max and min, whether there was one

    def begin(self, column: Value) -> None:
        """Before the first entry."""
        code, first = self._code, _NONE if self.function == "first" else literal(_NEUTRAL[self.function], self._type)
        code.store(first, code.entry(self._type, self._total, column))
        code.store(Value("i32", "0"), self._nan)

    def begin_block(self) -> None:
        """Of a sum."""
        self._code.store(literal(0.0, self._code.number), self._block)

    def take(self, value: Value, number: Value, column: Value) -> None:
        """An entry, and its number in the group."""
        code, place = self._code, self._code.entry(self._type, self._total, column)
        if self.function == "first":
            found = code.select(code.converted(value, "i1"), number, _NONE)
            code.store(code.smaller(found, code.load("i64", place)), place)
            return
        value = code.converted(value, code.number)
        if self.function == "sum" and self._single:
            before = code.load(value.type, self._block)
            code.store(code.operation("fadd reassoc contract", before, value), self._block)
            return
        before = code.load(self._type, place)
        if self.function == "sum":
            result = code.operation("fadd", before, code.converted(value, "double"))
        elif not self._single:
            result = code.applied({"max": "maximum", "min": "minimum"}[self.function], [before, value])
        else:
            # Without NaN, which is noted apart, LLVM knows that it may take the entries in any order.
            compare = {"max": "ogt", "min": "olt"}[self.function]
            test = code.operation(f"fcmp nnan nsz {compare}", value, before, "i1")
            result = code.select(test, value, before, "nnan nsz ")
            undefined = code.converted(code.operation("fcmp uno", value, value, "i1"), "i32")
            code.store(code.operation("or", code.load("i32", self._nan), undefined), self._nan)
        code.store(result, place)

    def end_block(self) -> None:
        """Of a sum."""
        code = self._code
        block = code.converted(code.load(code.number, self._block), "double")
        code.store(code.operation("fadd", code.load("double", self._total), block), self._total)

    def end(self, column: Value) -> Value:
        """The result."""
        code = self._code
        total = code.load(self._type, code.entry(self._type, self._total, column))
        if self.function == "first":
            return code.select(code.operation("icmp eq", total, _NONE, "i1"), whole(-1), total)
        if self.function != "sum" and self._single:
            test = code.converted(code.load("i32", self._nan), "i1")
            total = code.select(test, literal(float("nan"), total.type), total)
        return code.converted(total, code.number)


@dataclass(frozen=True)
class Largest:
    """The numbers of the largest entries, the largest first, in as many steps as there are entries, times log k.

    The first k entries make a heap, where the result will be: each comes after the two below it, so that the last in
    the order is at the top. Each entry that comes later and is larger takes the place of the top. At last the top is
    taken off again and again, and put behind what is left.

    Args:
        code: that reads and writes them.
        entries, step: where the first entry is, and from one to the next.
        numbers, number_step: the same of numbers, which are numbers of the kernel's dtype.
    """

    code: LLVM
    entries: Value
    step: Value
    numbers: Value
    number_step: Value

    def sort(self, size: Value, count: Value) -> None:
        """Write the numbers of the `count` largest of `size` entries."""
        code = self.code
        half, last = code.operation("sdiv", count, whole(2)), code.add(count, whole(-1))
        with code.loop(count) as at:
            self._put(at, at)
        with code.loop(half) as at:
            place = code.operation("sub nsw", code.add(half, whole(-1)), at)
            self._sink(self._number(place), place, count)
        with code.loop(code.operation("sub nsw", size, count)) as more:
            at = code.add(count, more)
            with code.when(self._larger(self._entry(at), self._entry(self._number(whole(0))))):
                self._sink(at, whole(0), count)
        with code.loop(last) as at:
            end = code.operation("sub nsw", last, at)
            number = self._number(end)
            self._put(end, self._number(whole(0)))
            self._sink(number, whole(0), end)

    def _sink(self, number: Value, place: Value, size: Value) -> None:
        """Put a number at a place of the heap, or below it, where what comes later goes up."""
        code, top = self.code, self.code.local("i64")
        code.store(place, top)
        with code.repeated() as leave:
            here = code.load("i64", top)
            left = code.add(code.add(here, here), whole(1))
            leave(code.operation("icmp sge", left, size, "i1"))
            right = code.smaller(code.add(left, whole(1)), code.add(size, whole(-1)))  # of a heap's end, the left one
            below = code.select(self._before(self._number(left), self._number(right)), right, left)
            leave(self._before(self._number(below), number))
            self._put(here, self._number(below))
            code.store(below, top)
        self._put(code.load("i64", top), number)

    def _before(self, a: Value, b: Value) -> Value:
        """Whether entry number a comes before number b."""
        code, of_a, of_b = self.code, self._entry(a), self._entry(b)
        unless = code.operation("xor", self._larger(of_b, of_a), Value("i1", "true"))
        return code.select(code.operation("icmp slt", a, b, "i1"), unless, self._larger(of_a, of_b))

    def _larger(self, a: Value, b: Value) -> Value:
        code = self.code
        return code.operation("and", code.operation("fcmp ugt", a, b, "i1"), code.operation("fcmp ord", b, b, "i1"))

    def _entry(self, number: Value) -> Value:
        return self._at(self.entries, number, self.step)

    def _number(self, place: Value) -> Value:
        return self.code.converted(self._at(self.numbers, place, self.number_step), "i64")

    def _at(self, array: Value, at: Value, step: Value) -> Value:
        code = self.code
        return code.load(code.number, code.entry(code.number, array, code.multiply(at, step)))

    def _put(self, place: Value, number: Value) -> None:
        code = self.code
        at = code.entry(code.number, self.numbers, code.multiply(place, self.number_step))
        code.store(code.converted(number, code.number), at)
