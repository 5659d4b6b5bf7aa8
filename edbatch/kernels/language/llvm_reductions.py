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
    """The numbers of the largest entries, the largest first: each entry goes to its place among those before it.

    An entry that is not larger than the last of `count` numbers takes one comparison.

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
        carried = code.local("i64")
        with code.loop(count) as at:
            self._pass_through(at, at, carried)
            self._put(at, code.load("i64", carried))
        with code.loop(code.operation("sub nsw", size, count)) as more:
            at = code.add(count, more)
            last = self._number(code.add(count, whole(-1)))
            with code.when(self._larger(self._entry(at), self._entry(last))):
                self._pass_through(at, count, carried)

    def _pass_through(self, number: Value, end: Value, carried: Value) -> None:
        """Put a number in its place among the first ones, each of which after it goes one further; carry the last."""
        code = self.code
        code.store(number, carried)
        with code.loop(end) as place:
            there, here = self._number(place), code.load("i64", carried)
            is_before = self._before(here, there)
            self._put(place, code.select(is_before, here, there))
            code.store(code.select(is_before, there, here), carried)

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
