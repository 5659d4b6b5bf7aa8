"""Scalar functions in LLVM's language: the table's meanings, and the instructions that these are made of."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from edbatch.errors import EdBatchError
from edbatch.kernels.language.expressions import evaluate
from edbatch.kernels.language.functions import FUNCTIONS, Function
from edbatch.kernels.language.llvm_code import INTEGERS, Code, Value, literal, pointer
from edbatch.kernels.language.llvm_unusual import chosen, kept
from edbatch.kernels.language.single import turns

_FLOATS = {
    "add": "fadd", "subtract": "fsub", "multiply": "fmul", "divide": "fdiv",
    "quotient": "fdiv arcp",  # within 2 units in the last place, of numbers that are far from the limits
}  # fmt: skip
_INTEGERS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "shift_left": "shl", "shift_right": "ashr",
    "unsigned_shift": "lshr", "bit_and": "and", "bit_xor": "xor",
}  # fmt: skip
_COMPARISONS = {
    "less": ("olt", "slt"), "less_equal": ("ole", "sle"), "greater": ("ogt", "sgt"), "greater_equal": ("oge", "sge"),
    "equal": ("oeq", "eq"), "different": ("une", "ne"),
}  # fmt: skip
_INTRINSICS = {"sqrt": "sqrt", "abs": "fabs", "floor": "floor", "fma": "fma"}
_WIDTHS = {"float": "f32", "double": "f64"}
_TABLES = {"turns_high": "high", "turns_low": "low"}


class Calls:
    """The functions that a kernel calls, and theirs, each defined once.

    Args:
        number: the type of the kernel's numbers, "float" or "double".
    """

    def __init__(self, number: str) -> None:
        self.number = number
        self._defined: dict[str, str] = {}
        self._quick: list[tuple[str, int]] = []

    def text(self) -> str:
        """Their definitions."""
        return "\n".join([*(text for text in self._defined.values() if text), kept(self.number, self._quick)])

    def call(self, code: Code, name: str, operands: list[Value], contract: bool = False) -> Value:
        """The value of a function of the table; its operands are converted as needed.

        Args:
            contract: whether a product and a sum may become one instruction, as in functions that are written so. Not
                in a kernel's own arithmetic: what a derivative computes again is then, to the last bit, what the
                forward run computed, whatever else is in either kernel.
        """
        found = _instruction(code, name, operands, self.number, contract)
        if found is not None:
            if name in _INTRINSICS:
                self._declare_intrinsic(name, found.type, len(operands))
            if name in _TABLES:
                self._defined[name] = _table(name)
            return found
        if name not in FUNCTIONS:
            raise EdBatchError(f"LLVM's language has no function {name!r}")
        arguments = FUNCTIONS[name].arguments
        kind = "i64" if arguments == ("seed", "position") else self.number
        self._define(f"ed_{name}", FUNCTIONS[name], kind)
        given = ", ".join(f"{kind} {code.converted(value, kind).name}" for value in operands)
        return code.call(self.number, f"ed_{name}", given)

    def _declare_intrinsic(self, name: str, type: str, arguments: int) -> None:
        symbol = f"llvm.{_INTRINSICS[name]}.{_WIDTHS[type]}"
        self._defined[symbol] = f"declare {type} @{symbol}({', '.join([type] * arguments)})"

    def _define(self, symbol: str, function: Function, kind: str) -> None:
        if symbol in self._defined:
            return
        self._defined[symbol] = ""
        library = f"library({', '.join(function.arguments)})" if function.library else ""
        text, anywhere = function.single or function.meaning, function.anywhere
        if self.number == "double":
            text, anywhere = function.double or function.meaning or library, library
        if not text:
            which = "`single` or `meaning`" if self.number == "float" else "`double`, `meaning` or `library`"
            raise EdBatchError(f"the function {symbol.removeprefix('ed_')!r} on the CPU: expected one with {which}")
        if "usual(" in text:
            self._quick.append((symbol, len(function.arguments)))
            self._write(f"{symbol}_anywhere", function, anywhere, kind)
            self._defined[f"{symbol}_chosen"] = chosen(self.number, symbol, function.arguments)
        self._write(symbol, function, text, kind)

    def _write(self, symbol: str, function: Function, text: str, kind: str) -> None:
        number, code = self.number, Code()
        given = ", ".join(f"{kind} %{argument}" for argument in function.arguments)

        def call(name: str, operands: list[Value]) -> Value:
            if name == "library":
                types = ", ".join([kind] * len(operands))
                pure = " willreturn readnone" if "usual(" in function.double else ""
                self._defined[function.library] = f"declare {number} @{function.library}({types}) nounwind{pure}"
                return code.call(number, function.library, given)
            if name != "usual":
                return self.call(code, name, operands, contract=True)
            test, value = operands
            return code.call(number, f"{symbol}_chosen", f"{given}, {number} {value.name}, i1 {test.name}")

        arguments = {argument: Value(kind, f"%{argument}") for argument in function.arguments}
        result = code.converted(evaluate(text, arguments, partial(Value, "literal"), call), number)
        head = f"define internal {number} @{symbol}({given}) alwaysinline nounwind {{"
        self._defined[symbol] = "\n".join([head, "entry:", *code.lines, f"  ret {number} {result.name}", "}"])


def _instruction(code: Code, name: str, operands: list[Value], number: str, contract: bool) -> Value | None:
    """What is an instruction or two; None if it is not."""
    if name == "select":
        a, b = _alike(code, operands[1:], number)
        return code.select(code.converted(operands[0], "i1"), a, b)
    if name in ("both", "either", "no"):
        first, second, *_ = (*(code.converted(operand, "i1") for operand in operands), Value("i1", "1"))
        return code.operation({"both": "and", "either": "or", "no": "xor"}[name], first, second)
    if name in _COMPARISONS:
        a, b = _alike(code, operands, number)
        floats, integers = _COMPARISONS[name]
        if a.type == "i1":  # its 1 counts as -1 where numbers have signs
            integers = integers.replace("s", "u", 1)
        return code.operation(f"fcmp {floats}" if a.type in INTEGERS else f"icmp {integers}", a, b, "i1")
    if name in _FLOATS or name in _INTEGERS:
        if name not in _INTEGERS:
            operands = [code.converted(x, number) if x.type == "i64" else x for x in operands]
        a, b = _alike(code, operands, number, of_truth=number)
        if a.type in INTEGERS:
            return (
                code.operation(f"{_FLOATS[name]}{' contract' if contract else ''}", a, b) if name in _FLOATS else None
            )
        return code.operation(_INTEGERS[name], a, b) if name in _INTEGERS else None
    if name == "fma":  # not rounded in between, whatever the processor can do
        a, b, c = _alike(code, operands, number)
        given = ", ".join(f"{x.type} {x.name}" for x in (a, b, c))
        return code.emit(a.type, f"call {a.type} @llvm.fma.{_WIDTHS[a.type]}({given})")
    if len(operands) > 1:
        return None
    (x,) = operands
    if name in _TABLES:
        return _looked_up(code, name, x)
    if name in _CONVERSIONS:
        return _CONVERSIONS[name](code, x)
    if x.type not in INTEGERS:
        x = code.converted(x, number)
    if name == "negate":
        return code.emit(x.type, f"fneg {x.type} {x.name}")
    if name in _INTRINSICS:
        return code.emit(x.type, f"call {x.type} @llvm.{_INTRINSICS[name]}.{_WIDTHS[x.type]}({x.type} {x.name})")
    return x if name == "same" else None


def _alike(code: Code, operands: list[Value], number: str, of_truth: str = "i1") -> list[Value]:
    """Operands of one type: that which is not a literal's; of a number and an integer, the number's."""
    types = {operand.type for operand in operands} - {"literal"}
    if not types:
        return [literal(float(operand.name), number) for operand in operands]
    if types == {"i1"} and of_truth != "i1":
        types = {of_truth}
    floats = types & {"float", "double"}
    if "i1" in types and any(operand.type == "literal" for operand in operands):
        floats = {number}
    (type,) = floats or ({number} if len(types) > 1 else types)
    return [code.converted(operand, type) for operand in operands]


def _bits(code: Code, x: Value) -> Value:
    return code.emit(INTEGERS[x.type], f"bitcast {x.type} {x.name} to {INTEGERS[x.type]}")


def _from_bits(code: Code, x: Value) -> Value:
    type = "float" if x.type == "i32" else "double"
    return code.emit(type, f"bitcast {x.type} {x.name} to {type}")


_CONVERSIONS: dict[str, Callable[[Code, Value], Value]] = {
    "bits": _bits,
    "from_bits": _from_bits,
    "low_bits": lambda code, x: code.converted(_bits(code, x), "i32"),
    "number": lambda code, x: code.converted(x, "float" if x.type == "i32" else "double"),
    "double": lambda code, x: code.converted(x, "double"),
    "single": lambda code, x: code.converted(x, "float"),
}


def _looked_up(code: Code, name: str, at: Value) -> Value:
    array = pointer("[256 x double]")
    index = code.converted(at, "i64").name
    place = code.emit(pointer("double"), f"getelementptr [256 x double], {array} @{name}, i64 0, i64 {index}")
    return code.load("double", place)


@cache
def _table(name: str) -> str:
    numbers = ", ".join(f"double {literal(number, 'double').name}" for number in turns(_TABLES[name]))
    return f"@{name} = internal constant [256 x double] [{numbers}]"
