"""Text in LLVM's language, written instruction after instruction."""

# mypy: disable-error-code="import-untyped"

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from edbatch.base.context_stack import contextmanager
from edbatch.kernels.language.functions import as_float32


class Value(NamedTuple):
    """What stands for a value: its type ("float", "double", "i32", "i64", "i1", a pointer's) and its name.

    A literal has the type "literal" until it meets another value; its name is Python's.
    """

    type: str
    name: str


INTEGERS = {"float": "i32", "double": "i64"}  # of as many bits


@cache
def pointer(to: str) -> str:
    """The type of a pointer, which newer versions of LLVM do not tell apart."""
    import llvmlite

    return "ptr" if tuple(map(int, llvmlite.__version__.split(".")[:2])) >= (0, 45) else f"{to}*"


def whole(number: int) -> Value:
    """An integer of 64 bits."""
    return Value("i64", str(number))


def literal(number: float, type: str) -> Value:
    """A number as LLVM writes it, rounded to its type."""
    number = as_float32(number) if type == "float" else number
    return Value(type, f"0x{struct.pack('>d', number).hex().upper()}")


@dataclass
class Branch:
    """What a branch gives."""

    result: Value


class Code:
    """The lines of one function."""

    def __init__(self) -> None:
        self.lines: list[str] = []
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

    def add(self, a: Value, b: Value) -> Value:
        """Of addresses and numbers of entries."""
        return b if a.name == "0" else a if b.name == "0" else self.operation("add nsw", a, b)

    def multiply(self, a: Value, b: Value) -> Value:
        """Of addresses and numbers of entries."""
        if "0" in (a.name, b.name):
            return whole(0)
        return b if a.name == "1" else a if b.name == "1" else self.operation("mul nsw", a, b)

    def smaller(self, a: Value, b: Value) -> Value:
        """Of integers."""
        test = self.operation("icmp slt", a, b, "i1")
        return self.select(test, a, b)

    def select(self, test: Value, a: Value, b: Value, flags: str = "") -> Value:
        """One of two."""
        return self.emit(a.type, f"select {flags}i1 {test.name}, {a.type} {a.name}, {b.type} {b.name}")

    def local(self, type: str, count: int = 1) -> Value:
        """A variable of the function, or an array: where it is."""
        self._count += 1
        self.begin.append(f"  %l{self._count} = alloca {type}, i64 {count}")
        return Value(pointer(type), f"%l{self._count}")

    def entry(self, type: str, array: Value, at: Value) -> Value:
        """Where an entry of an array is."""
        if at.name == "0":
            return array
        return self.emit(array.type, f"getelementptr inbounds {type}, {array.type} {array.name}, i64 {at.name}")

    def load(self, type: str, place: Value) -> Value:
        """What is there."""
        return self.emit(type, f"load {type}, {place.type} {place.name}{self._group}")

    def store(self, value: Value, place: Value) -> None:
        """Write it there."""
        self.lines.append(f"  store {value.type} {value.name}, {place.type} {place.name}{self._group}")

    def call(self, type: str, function: str, given: str) -> Value:
        """What a function gives for its arguments, as text; it may read tables."""
        return self.emit(type, f"call contract {type} @{function}({given}){self._group}")

    def at_address(self, type: str, address: Value) -> Value:
        """The place at an address."""
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
    def branch(self, otherwise: Value, test: Value) -> Iterator[Branch]:
        """Its block runs if a test is true; afterwards the branch's result is what it set, or `otherwise`."""
        number = self._count = self._count + 1
        branch = Branch(otherwise)
        self.lines += [
            f"  br label %if{number}",
            f"if{number}:",
            f"  br i1 {test.name}, label %then{number}, label %end{number}",
            f"then{number}:",
        ]
        yield branch
        self.lines += [f"  br label %last{number}", f"last{number}:", f"  br label %end{number}", f"end{number}:"]
        pairs = f"[ {otherwise.name}, %if{number} ], [ {branch.result.name}, %last{number} ]"
        branch.result = self.emit(otherwise.type, f"phi {otherwise.type} {pairs}")

    def converted(self, value: Value, type: str) -> Value:
        """A value as another type; truth as 1 or 0, a number as whether it is not 0."""
        if value.type == type:
            return value
        if value.type == "literal":
            return literal(float(value.name), type) if type in INTEGERS else Value(type, _integer(value.name, type))
        floats, kinds = ("float", "double"), (value.type, type)
        if type == "i1":
            test = "fcmp une" if value.type in floats else "icmp ne"
            return self.operation(test, value, self.converted(Value("literal", "0"), value.type), "i1")
        if value.type == "i1":
            name = "uitofp" if type in floats else "zext"
        elif value.type in floats:
            name = {("float", "double"): "fpext", ("double", "float"): "fptrunc"}.get(kinds, "fptosi")
        else:
            name = "sitofp" if type in floats else "sext" if kinds == ("i32", "i64") else "trunc"
        return self.emit(type, f"{name} {value.type} {value.name} to {type}")


def _integer(text: str, type: str) -> str:
    bits = int(type[1:])
    number = int(text) % 2**bits
    return str(number - 2**bits if number >= 2 ** (bits - 1) else number)
