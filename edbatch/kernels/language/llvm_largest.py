"""The numbers of the largest entries in LLVM's language: as many steps as there are entries, times the logarithm of k.

The first k entries make a heap, where the result will be; each that comes later and is larger takes the place of the
smallest. At last the smallest is taken off the heap again and again, and put behind what is left of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from edbatch.kernels.language.llvm_code import Code, Value, whole


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
