"""Scalar functions in LLVM's language: the table's meanings, and the instructions that these are made of."""

# ruff: noqa: D102 (see `code.Code`)

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from edbatch.errors import EdBatchError
from edbatch.kernels.language.code import Value
from edbatch.kernels.language.expressions import evaluate
from edbatch.kernels.language.functions import FUNCTIONS, Function
from edbatch.kernels.language.llvm_code import INTEGERS, INTRINSICS, LLVM, WIDTHS, literal, pointer
from edbatch.kernels.language.single import turns

_BITS = ("shift_left", "shift_right", "unsigned_shift", "bit_and", "bit_xor")
_TABLES = {"turns_high": "high", "turns_low": "low"}


class Calling(LLVM):
    """Lines that call functions.

    Args:
        number: see `LLVM`.
        definitions: texts of all functions that are called, by name; shared by these.
        contract: see `LLVM`.
    """

    def __init__(self, number: str, definitions: dict[str, str] | None = None, contract: bool = False) -> None:
        super().__init__(number, contract)
        self.definitions: dict[str, str] = {} if definitions is None else definitions

    def text_of_definitions(self) -> str:
        """All functions."""
        return "\n".join(text for text in self.definitions.values() if text)

    def intrinsic(self, name: str, operands: list[Value]) -> Value:
        kind = operands[0].type
        symbol = f"llvm.{INTRINSICS[name]}.{WIDTHS[kind]}"
        self.definitions[symbol] = f"declare {kind} @{symbol}({', '.join([kind] * len(operands))})"
        return super().intrinsic(name, operands)

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
        arguments = FUNCTIONS[name].arguments
        kind = "i64" if arguments == ("seed", "position") else self.number
        self._define(f"ed_{name}", FUNCTIONS[name], kind)
        given = ", ".join(f"{kind} {self.converted(value, kind).name}" for value in operands)
        return self.call(self.number, f"ed_{name}", given)

    def _define(self, symbol: str, function: Function, kind: str) -> None:
        if symbol in self.definitions:
            return
        self.definitions[symbol] = ""
        library = f"library({', '.join(function.arguments)})" if function.library else ""
        text = function.single or function.meaning
        if self.number == "double":
            text = function.double or function.meaning or library
        if not text:
            which = "`single` or `meaning`" if self.number == "float" else "`double`, `meaning` or `library`"
            raise EdBatchError(f"the function {symbol.removeprefix('ed_')!r} on the CPU: expected one with {which}")
        number, code = self.number, Calling(self.number, self.definitions, contract=True)
        given = ", ".join(f"{kind} %{argument}" for argument in function.arguments)

        def call(name: str, operands: list[Value]) -> Value:
            if name != "library":
                return code.applied(name, operands)
            types = ", ".join([kind] * len(operands))
            self.definitions[function.library] = f"declare {number} @{function.library}({types}) nounwind"
            return code.call(number, function.library, given)

        arguments = {argument: Value(kind, f"%{argument}") for argument in function.arguments}
        result = code.converted(evaluate(text, arguments, partial(Value, "literal"), call), number)
        head = f"define internal {number} @{symbol}({given}) alwaysinline nounwind {{"
        self.definitions[symbol] = "\n".join([head, "entry:", *code.lines, f"  ret {number} {result.name}", "}"])

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
