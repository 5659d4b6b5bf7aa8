"""Text in CUDA C++, written statement after statement."""

# ruff: noqa: D102 (see `code.Code`)

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from edbatch.base.context_stack import contextmanager
from edbatch.errors import EdBatchError
from edbatch.kernels.language.code import FLOATS, ZERO, Code, Value
from edbatch.kernels.language.expressions import evaluate
from edbatch.kernels.language.functions import FUNCTIONS, as_float32

TYPES = {"float": "float", "double": "double", "i32": "int", "i64": "long long", "i1": "bool"}
_OPERATORS = {
    "add": "({} + {})", "subtract": "({} - {})", "multiply": "({} * {})", "divide": "({} / {})", "negate": "(-{})",
    "less": "({} < {})", "less_equal": "({} <= {})", "greater": "({} > {})", "greater_equal": "({} >= {})",
    "equal": "({} == {})", "different": "({} != {})", "both": "({} && {})", "either": "({} || {})", "no": "(!{})",
}  # fmt: skip
_NAMES = {"abs": "fabs", "floor": "floor"}


def number(value: float, type: str = "float") -> str:
    """A literal whose value is one of the type exactly, so that no compiler rounds it another way.

    Example:
        >>> number(0.3), number(-math.inf), number(0.3, "double")
        ('0.30000001192092896f', '(-INFINITY)', '0.3')
    """
    if type == "float":
        value = as_float32(value)
    if math.isnan(value):
        return "(INFINITY - INFINITY)"
    size = "INFINITY" if math.isinf(value) else f"{abs(value)!r}{'f' if type == 'float' else ''}"
    return f"(-{size})" if math.copysign(1, value) < 0 else size


class Cuda(Code):
    """The lines of a kernel."""

    def named(self, value: Value, name: str) -> Value:
        self.lines.append(f"const {TYPES[value.type]} {name} = {value.name};")
        return Value(value.type, name)

    def sum(self, a: Value, b: Value) -> Value:
        return Value("i64", f"({a.name} + {b.name})")

    def product(self, a: Value, b: Value) -> Value:
        return Value("i64", f"{a.name} * {b.name}")

    def operator(self, name: str, operands: list[Value], type: str) -> Value:
        names = [x.name for x in operands]
        if name in _NAMES:
            return Value(type, f"{_NAMES[name]}{'f' if type == 'float' else ''}({names[0]})")
        return Value(type, _OPERATORS[name].format(*names))

    def called(self, name: str, operands: list[Value]) -> Value:
        known = FUNCTIONS.get(name)
        if known is None or len(known.arguments) != len(operands):
            raise EdBatchError(f"CUDA has no function {name!r} of {len(operands)}")
        if known.arguments != ("seed", "position"):
            operands = [self.as_number(x) for x in operands]
        symbol = known.cuda
        if not symbol and known.library:
            symbol = f"{known.library}f" if self.number == "float" else known.library
        if symbol:
            return Value(self.number, f"{symbol}({', '.join(x.name for x in operands)})")
        given = dict(zip(known.arguments, operands, strict=True))
        return self.converted(evaluate(known.meaning, given, partial(Value, "literal"), self.applied), self.number)

    def select(self, test: Value, a: Value, b: Value) -> Value:
        return Value(a.type, f"({test.name} ? {a.name} : {b.name})")

    def converted(self, value: Value, type: str) -> Value:
        if value.type == type:
            return value
        if value.type == "literal":
            return Value(type, number(float(value.name), type) if type in FLOATS else value.name)
        if type == "i1":
            return self.operator("different", [value, self.converted(ZERO, value.type)], type)
        return Value(type, f"({TYPES[type]}){value.name}")

    def constant(self, number_: float) -> Value:
        return Value(self.number, number(number_, self.number))

    def at_address(self, type: str, address: Value) -> Value:
        return Value(f"{type}*", f"(const {TYPES[type]}*)({address.name})")

    def entry(self, type: str, array: Value, at: Value) -> Value:
        return array if at.name == "0" else Value(array.type, f"({array.name} + {at.name})")

    def load(self, type: str, place: Value) -> Value:
        return Value(type, f"*{place.name}")

    def store(self, value: Value, place: Value) -> None:
        self.lines.append(f"*{place.name} = {value.name};")

    def add_to(self, value: Value, place: Value) -> None:
        self.lines.append(f"*{place.name} += {value.name};")

    @contextmanager
    def when(self, test: Value) -> Iterator[None]:
        around, self.lines = self.lines, []
        yield
        inside, self.lines = self.lines, around
        if inside:
            self.lines += [f"if ({test.name}) {{", *(f"    {line}" for line in inside), "}"]
