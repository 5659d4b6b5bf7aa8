"""Scalar functions in LLVM's language: the table's meanings, and the instructions that these are made of."""

# ruff: noqa: D102 (see `code.Code`)

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from edbatch.errors import EdBatchError
from edbatch.kernels.language.code import Value
from edbatch.kernels.language.expressions import evaluate
from edbatch.kernels.language.functions import FUNCTIONS
from edbatch.kernels.language.llvm_code import INTEGERS, INTRINSICS, LLVM, literal, pointer
from edbatch.kernels.language.single import turns

_BITS = ("shift_left", "shift_right", "unsigned_shift", "bit_and", "bit_xor")
_TABLES = {"turns_high": "high", "turns_low": "low"}


class Calling(LLVM):
    """Lines that call functions, and define them."""

    def called(self, name: str, operands: list[Value]) -> Value:
        if name in _CONVERSIONS:
            return _CONVERSIONS[name](self, *operands)
        if name in _TABLES:
            self.definitions[name] = _table(name)
            return self._looked_up(name, *operands)
        if name in INTRINSICS:  # `fma` is not rounded in between, whatever the processor can do
            return self.intrinsic(name, self.alike([x if x.type == "literal" else self.as_number(x) for x in operands]))
        if name in _BITS or name == "quotient":
            operands = self.alike(operands)
            return self.operator(name, operands, operands[0].type)
        if name not in FUNCTIONS:
            raise EdBatchError(f"LLVM's language has no function {name!r}")
        function, symbol, number = FUNCTIONS[name], f"ed_{name}", self.number
        text = (function.single if number == "float" else function.double) or function.meaning
        if not text and function.double:
            text, number = function.double, "double"
        kind = "i64" if function.arguments == ("seed", "position") else number
        if text:
            self._define(symbol, function.arguments, text, kind, number)
        elif self.number == "double" and function.library:
            symbol = function.library
            self.definitions[symbol] = f"declare {kind} @{symbol}({', '.join([kind] * len(operands))}) nounwind"
        else:
            which = "`single` or `meaning`" if self.number == "float" else "`double`, `meaning` or `library`"
            raise EdBatchError(f"the function {name!r} on the CPU: expected one with {which}")
        given = ", ".join(f"{kind} {self.converted(value, kind).name}" for value in operands)
        return self.converted(self.call(number, symbol, given), self.number)

    def _define(self, symbol: str, arguments: tuple[str, ...], text: str, kind: str, number: str) -> None:
        if symbol in self.definitions:
            return
        code = Calling(number, self.definitions)
        values = {argument: Value(kind, f"%{argument}") for argument in arguments}
        result = code.converted(evaluate(text, values, partial(Value, "literal"), code.applied), number)
        head = f"define internal {number} @{symbol}({', '.join(f'{kind} %{argument}' for argument in arguments)})"
        lines = [f"{head} alwaysinline nounwind {{", "entry:", *code.lines, f"  ret {number} {result.name}", "}"]
        self.definitions[symbol] = "\n".join(lines)

    def _looked_up(self, name: str, at: Value) -> Value:
        array = pointer("[256 x double]")
        index = self.converted(at, "i64").name
        place = self.emit(pointer("double"), f"getelementptr [256 x double], {array} @{name}, i64 0, i64 {index}")
        return self.load("double", place)


def _bits(code: LLVM, x: Value) -> Value:
    return code.emit(INTEGERS[x.type], f"bitcast {x.type} {x.name} to {INTEGERS[x.type]}")


def _from_bits(code: LLVM, x: Value) -> Value:
    type = "float" if x.type == "i32" else "double"
    return code.emit(type, f"bitcast {x.type} {x.name} to {type}")


_CONVERSIONS: dict[str, Callable[[LLVM, Value], Value]] = {
    "bits": _bits,
    "from_bits": _from_bits,
    "low_bits": lambda code, x: code.converted(_bits(code, x), "i32"),
    "number": lambda code, x: code.converted(x, "float" if x.type == "i32" else "double"),
    "double": lambda code, x: code.converted(x, "double"),
    "single": lambda code, x: code.converted(x, "float"),
}


@cache
def _table(name: str) -> str:
    numbers = ", ".join(f"double {literal(number, 'double').name}" for number in turns(_TABLES[name]))
    return f"@{name} = internal constant [256 x double] [{numbers}]"
