"""Kernels from Python to machine code, by way of LLVM: for the little of Python that fused kernels are written in.

Numba understands all of Python, and takes 0.2 s for a kernel before LLVM begins, and LLVM as long again for code that
it then throws away. Here a kernel is its syntax tree, walked once: assignments, loops over ranges, memory by address,
and arithmetic of float32, int64 and int32. Functions of `scalars` that a kernel calls are translated in the same way.
"""

# mypy: disable-error-code="import-untyped,no-untyped-call"

from __future__ import annotations

import ast
import hashlib
import inspect
import math
import struct
import threading
from functools import cache
from typing import Any, NamedTuple

from edbatch.code_cache import environment, keep, kept
from edbatch.errors import EdBatchError
from edbatch.exclusive import Whole
from edbatch.kernels import scalars
from edbatch.stopwatch import compiling

_OPERATORS = {
    "float": {ast.Add: "fadd contract", ast.Sub: "fsub contract", ast.Mult: "fmul contract", ast.Div: "fdiv contract"},
    "i64": {ast.Add: "add nsw", ast.Sub: "sub nsw", ast.Mult: "mul nsw"},
    "i32": {ast.Add: "add", ast.Sub: "sub", ast.LShift: "shl", ast.RShift: "ashr"},
}
_COMPARISONS = {ast.Lt: "olt", ast.LtE: "ole", ast.Gt: "ogt", ast.GtE: "oge", ast.Eq: "oeq", ast.NotEq: "une"}
_LIBRARY = {"sqrt": "llvm.sqrt.f32", "abs": "llvm.fabs.f32", "floor": "llvm.floor.f32"}


class Value(NamedTuple):
    """What stands for a value in LLVM's language: its type ("float", "i64", "i32", "i1", or the pointer's) and name."""

    type: str
    name: str


@cache
def _definitions() -> dict[str, ast.FunctionDef]:
    """The functions of `scalars`."""
    tree = ast.parse(inspect.getsource(scalars))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


@cache
def _pointer(to: str) -> str:
    """The type of a pointer, which newer versions of LLVM do not tell apart."""
    import llvmlite

    return "ptr" if tuple(map(int, llvmlite.__version__.split(".")[:2])) >= (0, 45) else f"{to}*"


class _Function:
    """The translation of one function."""

    def __init__(self, names: dict[str, Value]) -> None:
        self.names = names
        self.lines: list[str] = []
        self.called: dict[str, None] = {}  # functions of `scalars`, in their order
        self._count = 0
        self._block = "entry"

    def emit(self, type: str, text: str) -> Value:
        """The result of an instruction."""
        self._count += 1
        self.lines.append(f"  %t{self._count} = {text}")
        return Value(type, f"%t{self._count}")

    def label(self, name: str) -> None:
        """Begin a block."""
        self.lines.append(f"{name}:")
        self._block = name

    def run(self, statements: list[ast.stmt]) -> None:
        """Translate statements."""
        for statement in statements:
            match statement:
                case ast.Expr(ast.Constant(str())):
                    pass
                case ast.Assign([ast.Tuple(targets)], ast.Tuple(values)) if len(targets) == len(values):
                    for target, value in zip(targets, [self.value(one) for one in values], strict=True):
                        self._assign(target, value)
                case ast.Assign([target], value):
                    self._assign(target, self.value(value))
                case ast.For(ast.Name(name), ast.Call(ast.Name("range"), [end], []), body, []):
                    self._loop(name, self.value(end), body)
                case ast.Return(ast.expr() as value):
                    found = self.value(value)
                    self.lines.append(f"  ret {found.type} {found.name}")
                case _:
                    raise EdBatchError(f"kernels cannot have {ast.unparse(statement)!r}")

    def _assign(self, target: ast.expr, value: Value) -> None:
        match target:
            case ast.Name(name):
                self.names[name] = value
            case ast.Subscript(array, at):
                place = self._place(array, at)
                self.lines.append(f"  store float {value.name}, {place.type} {place.name}")
            case _:
                raise EdBatchError(f"kernels cannot assign to {ast.unparse(target)!r}")

    def _loop(self, name: str, end: Value, body: list[ast.stmt]) -> None:
        number = self._count = self._count + 1
        before, head, inside, latch, after = (f"{part}{number}" for part in ("before", "head", "in", "latch", "after"))
        self.lines.append(f"  br label %{before}")
        self.label(before)
        self.lines.append(f"  br label %{head}")
        self.label(head)
        at = Value("i64", f"%at{number}")
        self.lines += [
            f"  {at.name} = phi i64 [ 0, %{before} ], [ %next{number}, %{latch} ]",
            f"  %more{number} = icmp slt i64 {at.name}, {end.name}",
            f"  br i1 %more{number}, label %{inside}, label %{after}",
        ]
        self.label(inside)
        outer, self.names = self.names, {**self.names, name: at}
        self.run(body)
        self.names = outer
        self.lines.append(f"  br label %{latch}")
        self.label(latch)
        self.lines += [f"  %next{number} = add nsw i64 {at.name}, 1", f"  br label %{head}"]
        self.label(after)

    def _place(self, array: ast.expr, at: ast.expr) -> Value:
        base, index = self.value(array), self.value(at)
        entry = "i64" if base.name == "%places" else "float"
        return self.emit(_pointer(entry), f"getelementptr {entry}, {_pointer(entry)} {base.name}, i64 {index.name}")

    def value(self, node: ast.expr) -> Value:
        """Translate an expression."""
        match node:
            case ast.Name(name) if name in self.names:
                return self.names[name]
            case ast.Constant(int() as whole) if not isinstance(whole, bool):
                return Value("i64", str(whole))
            case ast.Call(ast.Name("int32"), [ast.Constant(int() as whole)], []):
                return Value("i32", str(whole))
            case ast.Call(ast.Name("float32"), [number], []) if (literal := _literal(number)) is not None:
                return Value("float", literal)
            case ast.Subscript(array, at):
                place = self._place(array, at)
                entry = "i64" if ast.unparse(array) == "places" else "float"
                return self.emit(entry, f"load {entry}, {place.type} {place.name}")
            case ast.UnaryOp(ast.USub(), operand):
                of = self.value(operand)
                return self.emit("float", f"fneg contract float {of.name}")
            case ast.BinOp(left, operator, right):
                a, b = self.value(left), self.value(right)
                if a.type == b.type and type(operator) in _OPERATORS.get(a.type, ()):
                    return self.emit(a.type, f"{_OPERATORS[a.type][type(operator)]} {a.type} {a.name}, {b.name}")
            case ast.Compare(left, [comparison], [right]) if type(comparison) in _COMPARISONS:
                a, b = self.value(left), self.value(right)
                if a.type == b.type == "float":
                    return self.emit("i1", f"fcmp {_COMPARISONS[type(comparison)]} float {a.name}, {b.name}")
            case ast.BoolOp(ast.Or(), [left, right]):
                a, b = self.value(left), self.value(right)
                return self.emit("i1", f"or i1 {a.name}, {b.name}")
            case ast.IfExp(test, then, other):
                condition, a, b = self.value(test), self.value(then), self.value(other)
                if (condition.type, a.type) == ("i1", b.type):
                    return self.emit(a.type, f"select i1 {condition.name}, {a.type} {a.name}, {b.type} {b.name}")
            case ast.Call(function, arguments, []):
                name = function.attr if isinstance(function, ast.Attribute) else ast.unparse(function)
                found = self._call(name, [self.value(argument) for argument in arguments])
                if found is not None:
                    return found
        raise EdBatchError(f"kernels cannot have {ast.unparse(node)!r}")

    def _call(self, name: str, given: list[Value]) -> Value | None:
        kinds = [value.type for value in given]
        arguments = ", ".join(f"{value.type} {value.name}" for value in given)
        if name == "floats_at" and kinds == ["i64"]:
            return self.emit(_pointer("float"), f"inttoptr {arguments} to {_pointer('float')}")
        if name == "_bits_to_float" and kinds == ["i32"]:
            return self.emit("float", f"bitcast {arguments} to float")
        if name == "float32" and kinds == ["i32"]:
            return self.emit("float", f"sitofp {arguments} to float")
        if name == "int32" and kinds == ["float"]:
            return self.emit("i32", f"fptosi {arguments} to i32")
        if name in ("int32", "float32") and kinds == [{"int32": "i32", "float32": "float"}[name]]:
            return given[0]
        if name in _LIBRARY and kinds == ["float"]:
            found = self.emit("float", f"call contract float @{_LIBRARY[name]}({arguments})")
            # A floor is an integer in Python. Those of kernels are small.
            return self.emit("i32", f"fptosi float {found.name} to i32") if name == "floor" else found
        if name in _definitions() and set(kinds) == {"float"}:
            self.called[name] = None
            return self.emit("float", f"call contract float @{name}({arguments})")
        return None


def _literal(node: ast.expr) -> str | None:
    """The number in float32(...), rounded to float32, as LLVM writes it; None if it is no number."""
    match node:
        case ast.Constant(int() | float() as number):
            value = float(number)
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as number)):
            value = -float(number)
        case ast.Attribute(ast.Name("math"), "inf"):
            value = math.inf
        case _:
            return None
    try:
        rounded = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        rounded = math.copysign(math.inf, value)
    return f"0x{struct.pack('>d', rounded).hex().upper()}"


def llvm_of(source: str) -> str:
    """A kernel in LLVM's language.

    Args:
        source: of a function `kernel(n, d, places)`.

    Raises:
        EdBatchError: it has something that kernels do not.
    """
    (definition,) = (node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef))
    names = {"n": Value("i64", "%n"), "d": Value("i64", "%d"), "places": Value(_pointer("i64"), "%places")}
    kernel = _Function(names)
    kernel.run(definition.body)
    text = [f"declare float @{name}(float)" for name in _LIBRARY.values()]
    text += [f"define void @kernel(i64 %n, i64 %d, {_pointer('i64')} %places) nounwind {{", "entry:", *kernel.lines]
    text += ["  ret void", "}"]
    waiting, done = list(kernel.called), set()
    while waiting:
        name = waiting.pop()
        if name not in done:
            done.add(name)
            translated, function = _function(name)
            text.append(translated)
            waiting += function
    return "\n".join(text) + "\n"


@cache
def _function(name: str) -> tuple[str, list[str]]:
    """A function of `scalars`, and what it calls."""
    definition = _definitions()[name]
    parameters = [argument.arg for argument in definition.args.args]
    function = _Function({parameter: Value("float", f"%{parameter}") for parameter in parameters})
    function.run(definition.body)
    given = ", ".join(f"float %{parameter}" for parameter in parameters)
    lines = [f"define internal float @{name}({given}) alwaysinline nounwind {{", "entry:", *function.lines, "}"]
    return "\n".join(lines), list(function.called)


_lock = threading.Lock()


@cache
def _target() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_triple(llvm.get_process_triple())


def _machine() -> Any:
    """As Numba's: for this processor, code that stays where it is put."""
    import llvmlite.binding as llvm

    reloc = "static" if _target().name.startswith("x86") else "default"
    features = llvm.get_host_cpu_features().flatten()
    return _target().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=3, reloc=reloc, codemodel="jitdefault"
    )


@cache
def _engine() -> Any:
    """Where the code of all kernels of this process lies."""
    import llvmlite.binding as llvm

    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine())


def _object_of(text: str, name: str) -> bytes:
    """Machine code, as an object file."""
    import llvmlite.binding as llvm

    module = llvm.parse_assembly(text.replace("@kernel", f"@{name}"))
    machine = _machine()
    module.triple, module.data_layout = llvm.get_process_triple(), str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(3)
    options.loop_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    found: bytes = machine.emit_object(module)
    return found


@cache
def address_of(source: str) -> int:
    """The address of a kernel, compiled once for all processes: void f(int64 n, int64 d, int64 *places).

    Args:
        source: of a function `kernel(n, d, places)`.
    """
    import llvmlite.binding as llvm

    with Whole(), compiling, _lock:
        text = llvm_of(source)
        key = hashlib.blake2b(environment() + b"kernel" + text.encode(), digest_size=20).digest()
        name = f"kernel_{key.hex()}"
        found = kept(key)
        if found is None:
            found = _object_of(text, name)
            keep(key, found)
        engine = _engine()
        engine.add_object_file(llvm.ObjectFileRef.from_data(found))
        engine.finalize_object()
        address: int = engine.get_function_address(name)
        return address
