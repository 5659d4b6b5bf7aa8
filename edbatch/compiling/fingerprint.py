"""What compiled code is made of, as a digest: the code of functions, of all that they call, and what they read."""

# mypy: disable-error-code="import-untyped,no-untyped-call,attr-defined"

from __future__ import annotations

import hashlib
from enum import EnumMeta
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numba  # noqa: F401 (as a whole, and first: threads may be importing it)
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic

DIGEST = 20  # bytes
_LITERALS = (bool, int, float, str, bytes, slice, types.Type, ir.Type, np.dtype)  # whose `repr` tells them apart


def type_text(kind: Any) -> str:
    """Return a Numba type as text; of a named tuple with its class and fields."""
    if not isinstance(kind, types.BaseNamedTuple):
        return f"{kind},"
    made_by = kind.instance_class
    return f"{kind}{made_by.__module__}.{made_by.__qualname__}{kind.fields}{[*map(type_text, kind.types)]},"


def fingerprint(value: Any) -> bytes:
    """Return a digest of a function's code and of all that it reads, or of a constant.

    Raises:
        TypeError: something that compiled code must not depend on.
    """
    digest = hashlib.blake2b(digest_size=DIGEST)
    numbers: dict[int, int] = {}  # of the functions so far: one may call itself, or be known by several names
    waiting = [value]
    while waiting:
        one = waiting.pop()
        said, inner = (["again", numbers[id(one)]], list[Any]()) if id(one) in numbers else _parts(one)
        if isinstance(one, FunctionType):
            numbers.setdefault(id(one), len(numbers))
        digest.update("\x1f".join(map(str, [*said, len(inner)])).encode() + b"\x1e")
        waiting += reversed(inner)
    return digest.digest()


def _parts(value: Any) -> tuple[list[Any], list[Any]]:
    """What is said of a value, and what it is made of; annotations and positions of code do not matter."""
    if isinstance(value, Dispatcher):
        return ["compiled", sorted((name, str(x)) for name, x in value.targetoptions.items())], [value.py_func]
    if isinstance(value, _Intrinsic):
        return ["intrinsic"], [value._defn]
    if isinstance(value, FunctionType):
        if (value.__module__ or "").partition(".")[0] in ("numba", "llvmlite", "numpy", "math", "builtins"):
            return ["function", value.__module__, value.__qualname__], []  # changes with a version only
        read = {name: value.__globals__[name] for name in _names(value.__code__) if name in value.__globals__}
        held = [cell.cell_contents for cell in value.__closure__ or ()]
        # Numba's files name the modules of functions and classes, so what moved to another is another function.
        return ["ours", value.__module__], [value.__code__, value.__defaults__, held, read]
    if isinstance(value, CodeType):
        names = value.co_varnames, value.co_names, value.co_freevars
        return ["code", value.co_name, value.co_argcount, value.co_flags, *names, value.co_code], [*value.co_consts]
    if isinstance(value, tuple | list):
        return [type(value).__name__], [*value]
    if isinstance(value, set | frozenset):
        return ["set", sorted(map(repr, value))], []
    if isinstance(value, dict):
        return ["dict"], [part for item in sorted(value.items(), key=lambda item: item[0]) for part in item]
    if isinstance(value, EnumMeta):
        return ["enum", value.__qualname__, list(map(repr, list(value)))], []
    if isinstance(value, type):
        return ["class", value.__module__, value.__qualname__, getattr(value, "_fields", None)], []
    if isinstance(value, ModuleType):
        return ["module", value.__name__], []
    if isinstance(value, np.generic):
        return ["number", value.dtype, value.tobytes()], []
    if value is None or isinstance(value, _LITERALS):
        return [type(value).__name__, repr(value)], []
    if value is Ellipsis or type(value).__module__ in ("builtins", "typing", "types", "ctypes"):
        return ["built in", getattr(value, "__name__", type(value).__name__)], []
    raise TypeError(f"compiled code must not depend on {value!r}")


def callees(value: Any) -> set[Any]:
    """Return a compiled function, and all compiled functions that it calls."""
    found: set[Any] = set()
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            names, known = _names(one.py_func.__code__), one.py_func.__globals__
            held = [cell.cell_contents for cell in one.py_func.__closure__ or ()]
            waiting += [other for other in (*map(known.get, names), *held) if isinstance(other, Dispatcher)]
    return found


def _names(code: CodeType) -> set[str]:
    inner = (_names(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*inner)
