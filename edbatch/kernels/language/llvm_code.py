"""Text in LLVM's language, written instruction after instruction."""

# mypy: disable-error-code="import-untyped"

# ruff: noqa: D102 (see `code.Code`)

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import cache

from edbatch.base.context_stack import contextmanager
from edbatch.kernels.language.code import COMPARISONS, FLOATS, ZERO, Code, Value
from edbatch.kernels.language.functions import as_float32

INTEGERS = {"float": "i32", "double": "i64"}  # of as many bits


@cache
def pointer(to: str) -> str:
    """The type of a pointer, which newer versions of LLVM do not tell apart."""
    import llvmlite

    return "ptr" if tuple(map(int, llvmlite.__version__.split(".")[:2])) >= (0, 45) else f"{to}*"


def literal(number: float, type: str) -> Value:
    """A number as LLVM writes it, rounded to its type."""
    number = as_float32(number) if type == "float" else number
    return Value(type, f"0x{struct.pack('>d', number).hex().upper()}")


# By function, the instruction for numbers and that for integers, or truth.
_OPERATIONS = {
    "add": ("fadd", "add"), "subtract": ("fsub", "sub"), "multiply": ("fmul", "mul"), "divide": ("fdiv", ""),
    "quotient": ("fdiv arcp", ""),  # within 2 units in the last place, of numbers that are far from the limits
    "shift_left": ("", "shl"), "shift_right": ("", "ashr"), "unsigned_shift": ("", "lshr"),
    "bit_and": ("", "and"), "bit_xor": ("", "xor"), "both": ("", "and"), "either": ("", "or"), "no": ("", "xor"),
    "less": ("fcmp olt", "icmp slt"), "less_equal": ("fcmp ole", "icmp sle"), "greater": ("fcmp ogt", "icmp sgt"),
    "greater_equal": ("fcmp oge", "icmp sge"), "equal": ("fcmp oeq", "icmp eq"), "different": ("fcmp une", "icmp ne"),
}  # fmt: skip
INTRINSICS = {"sqrt": "sqrt", "abs": "fabs", "floor": "floor", "fma": "fma"}
WIDTHS = {"float": "f32", "double": "f64"}


class LLVM(Code):
    """The lines of one function; calls of others are left to who inherits.

    Args:
        number: see `Code`.
        definitions: texts by name of what the kernel calls, which calls this function; None: it is the kernel. A
            product and a sum of a function may become one instruction. Not so in a kernel's own arithmetic: what a
            derivative computes again is then, to the last bit, what the forward run computed, whatever else is in
            either kernel.
    """

    def __init__(self, number: str, definitions: dict[str, str] | None = None) -> None:
        super().__init__(number)
        self._contract = "" if definitions is None else " contract"
        self.definitions: dict[str, str] = {} if definitions is None else definitions
        self.metadata: list[str] = []
        self.begin: list[str] = []  # lines for the beginning of the function: its local variables
        self._count = 0
        self._group = ""  # of what is read and written in a parallel loop

    def emit(self, type: str, text: str) -> Value:
        """The result of an instruction."""
        self._count += 1
        self.lines.append(f"  %t{self._count} = {text}")
        return Value(type, f"%t{self._count}")

    def operation(self, text: str, a: Value, b: Value, type: str = "") -> Value:
        """An instruction of two operands of one type."""
        return self.emit(type or a.type, f"{text} {a.type} {a.name}, {b.name}")

    def operator(self, name: str, operands: list[Value], type: str) -> Value:
        kind = operands[0].type
        if name in INTRINSICS:
            return self.intrinsic(name, operands)
        if name == "negate":
            return self.emit(kind, f"fneg {kind} {operands[0].name}")
        of_numbers, text = _OPERATIONS[name]
        if kind in FLOATS:
            text = of_numbers if name in COMPARISONS else of_numbers + self._contract
        elif kind == "i1":  # whose 1 counts as -1 where numbers have signs
            text = text.replace("icmp s", "icmp u")
        first, second, *_ = (*operands, Value("i1", "1"))
        return self.operation(text, first, second, type)

    def intrinsic(self, name: str, operands: list[Value]) -> Value:
        """A function of LLVM."""
        kind = operands[0].type
        symbol = f"llvm.{INTRINSICS[name]}.{WIDTHS[kind]}"
        self.definitions[symbol] = f"declare {kind} @{symbol}({', '.join([kind] * len(operands))})"
        given = ", ".join(f"{kind} {x.name}" for x in operands)
        return self.emit(kind, f"call {kind} @{symbol}({given})")

    def sum(self, a: Value, b: Value) -> Value:
        return self.operation("add nsw", a, b)

    def product(self, a: Value, b: Value) -> Value:
        return self.operation("mul nsw", a, b)

    def smaller(self, a: Value, b: Value) -> Value:
        """Of integers."""
        return self.select(self.operation("icmp slt", a, b, "i1"), a, b)

    def select(self, test: Value, a: Value, b: Value, flags: str = "") -> Value:
        return self.emit(a.type, f"select {flags}i1 {test.name}, {a.type} {a.name}, {b.type} {b.name}")

    def constant(self, number: float) -> Value:
        return literal(number, self.number)

    def local(self, type: str, count: int = 1) -> Value:
        """A variable of the function, or an array: where it is."""
        self._count += 1
        self.begin.append(f"  %l{self._count} = alloca {type}, i64 {count}")
        return Value(pointer(type), f"%l{self._count}")

    def entry(self, type: str, array: Value, at: Value) -> Value:
        if at.name == "0":
            return array
        return self.emit(array.type, f"getelementptr inbounds {type}, {array.type} {array.name}, i64 {at.name}")

    def load(self, type: str, place: Value) -> Value:
        return self.emit(type, f"load {type}, {place.type} {place.name}{self._group}")

    def store(self, value: Value, place: Value) -> None:
        self.lines.append(f"  store {value.type} {value.name}, {place.type} {place.name}{self._group}")

    def add_to(self, value: Value, place: Value) -> None:
        self.store(self.operation("fadd contract", self.load(value.type, place), value), place)

    def call(self, type: str, function: str, given: str) -> Value:
        """What a function gives for its arguments, as text; it may read tables."""
        return self.emit(type, f"call contract {type} @{function}({given}){self._group}")

    def at_address(self, type: str, address: Value) -> Value:
        return self.emit(pointer(type), f"inttoptr i64 {address.name} to {pointer(type)}")

    @contextmanager
    def loop(self, end: Value, parallel: bool = False, single: bool = False) -> Iterator[Value]:
        """Its block runs for 0, 1, ..., end - 1.

        Args:
            end: an i64.
            parallel: nothing that it writes to memory is read or written by another turn of the loop; the innermost.
            single: one vector at a time, as no turn waits for the one before.
        """
        number = self._count = self._count + 1
        before, head, inside, latch, after = (f"{part}{number}" for part in ("before", "head", "in", "latch", "after"))
        at = Value("i64", f"%at{number}")
        self.lines += [
            f"  br label %{before}",
            f"{before}:",
            f"  br label %{head}",
            f"{head}:",
            f"  {at.name} = phi i64 [ 0, %{before} ], [ %next{number}, %{latch} ]",
            f"  %more{number} = icmp slt i64 {at.name}, {end.name}",
            f"  br i1 %more{number}, label %{inside}, label %{after}",
            f"{inside}:",
        ]
        marked = ""
        if parallel:
            group, accesses, count, loop = (len(self.metadata) + k for k in range(4))
            self.metadata += [
                f"!{group} = distinct !{{}}",
                f'!{accesses} = !{{!"llvm.loop.parallel_accesses", !{group}}}',
                f'!{count} = !{{!"llvm.loop.interleave.count", i32 1}}',
                f"!{loop} = distinct !{{!{loop}, !{accesses}{f', !{count}' if single else ''}}}",
            ]
            marked, self._group = f", !llvm.loop !{loop}", f", !llvm.access.group !{group}"
        yield at
        if parallel:
            self._group = ""
        self.lines += [
            f"  br label %{latch}",
            f"{latch}:",
            f"  %next{number} = add nsw i64 {at.name}, 1",
            f"  br label %{head}{marked}",
            f"{after}:",
        ]

    @contextmanager
    def repeated(self) -> Iterator[Callable[[Value], None]]:
        """Its block runs again and again, until what this gives is called with a test that is true."""
        self._count += 1
        again, after = f"again{self._count}", f"left{self._count}"
        self.lines += [f"  br label %{again}", f"{again}:"]

        def leave(test: Value) -> None:
            self._count += 1
            self.lines += [f"  br i1 {test.name}, label %{after}, label %stay{self._count}", f"stay{self._count}:"]

        yield leave
        self.lines += [f"  br label %{again}", f"{after}:"]

    @contextmanager
    def when(self, test: Value) -> Iterator[None]:
        number = self._count = self._count + 1
        self.lines += [f"  br i1 {test.name}, label %then{number}, label %end{number}", f"then{number}:"]
        yield
        self.lines += [f"  br label %end{number}", f"end{number}:"]

    def converted(self, value: Value, type: str) -> Value:
        if value.type == type:
            return value
        if value.type == "literal":
            return literal(float(value.name), type) if type in INTEGERS else Value(type, _integer(value.name, type))
        if type == "i1":
            test = "fcmp une" if value.type in FLOATS else "icmp ne"
            return self.operation(test, value, self.converted(ZERO, value.type), "i1")
        if value.type == "i1":
            name = "uitofp" if type in FLOATS else "zext"
        elif value.type in FLOATS:
            name = {("float", "double"): "fpext", ("double", "float"): "fptrunc"}.get((value.type, type), "fptosi")
        else:
            name = "sitofp" if type in FLOATS else "sext" if type == "i64" else "trunc"
        return self.emit(type, f"{name} {value.type} {value.name} to {type}")


def _integer(text: str, type: str) -> str:
    bits = int(type[1:])
    number = int(text) % 2**bits
    return str(number - 2**bits if number >= 2 ** (bits - 1) else number)
