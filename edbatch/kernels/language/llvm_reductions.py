"""Reductions in LLVM's language: what they keep while entries pass by."""

from __future__ import annotations

from edbatch.kernels.language.ir import Reduce
from edbatch.kernels.language.llvm_code import Value, literal, whole
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
