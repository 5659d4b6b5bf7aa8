"""What compiled code is made of, as a digest: the code of functions, of all that they call, and what they read."""

# mypy: disable-error-code="import-untyped,no-untyped-call,attr-defined"

from __future__ import annotations

import hashlib
from collections.abc import Callable
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


def type_text(kind: Any) -> str:
    """A Numba type as text; of a named tuple with its class and fields."""
    if not isinstance(kind, types.BaseNamedTuple):
        return f"{kind},"
    made_by = kind.instance_class
    return f"{kind}{made_by.__module__}.{made_by.__qualname__}{kind.fields}{[*map(type_text, kind.types)]},"


def fingerprint(value: Any) -> bytes:
    """A digest of a function's code and of all that it reads, or of a constant.

    Raises:
        TypeError: something that compiled code must not depend on.
    """
    digest = hashlib.blake2b(digest_size=DIGEST)
    _add_value(digest.update, value, {})
    return digest.digest()


def _add_value(add: Callable[[bytes], None], value: Any, seen: dict[int, int]) -> None:
    # `seen`: the functions so far, each with its number: one may call itself, or be known by several names.
    def text(*parts: object) -> None:
        add("\x1f".join(map(str, parts)).encode() + b"\x1e")

    if isinstance(value, Dispatcher):
        options = sorted((name, str(option)) for name, option in value.targetoptions.items())
        text("compiled", options)
        _add_value(add, value.py_func, seen)
    elif isinstance(value, _Intrinsic):
        text("intrinsic")
        _add_value(add, value._defn, seen)
    elif isinstance(value, FunctionType):
        if not _is_ours(value.__module__):
            text("function", value.__module__, value.__qualname__)
        elif id(value) in seen:
            text("again", seen[id(value)])
        else:
            seen[id(value)] = len(seen)
            _add_function(add, value, seen)
    elif isinstance(value, CodeType):
        text(value.co_name, value.co_argcount, value.co_flags, value.co_varnames, value.co_names, value.co_freevars)
        add(value.co_code)
        for constant in value.co_consts:
            _add_value(add, constant, seen)
    elif isinstance(value, tuple | list):
        text(type(value).__name__, len(value))
        for item in value:
            _add_value(add, item, seen)
    elif isinstance(value, set | frozenset):
        text("set", sorted(map(repr, value)))
    elif isinstance(value, dict):
        text("dict")
        _add_value(add, sorted(value.items()), seen)
    elif isinstance(value, EnumMeta):
        text("enum", value.__qualname__, list(map(repr, list(value))))
    elif isinstance(value, type):
        text("class", value.__module__, value.__qualname__, getattr(value, "_fields", None))
    elif isinstance(value, ModuleType):
        text("module", value.__name__)
    elif isinstance(value, np.generic):
        text("number", value.dtype, value.tobytes())
    elif value is None or isinstance(value, bool | int | float | str | bytes | types.Type | ir.Type | np.dtype | slice):
        text(type(value).__name__, repr(value))
    elif value is Ellipsis or type(value).__module__ in ("builtins", "typing", "types", "ctypes"):
        text("built in", getattr(value, "__name__", type(value).__name__))
    else:
        raise TypeError(f"compiled code must not depend on {value!r}")


def _add_function(add: Callable[[bytes], None], function: FunctionType, seen: dict[int, int]) -> None:
    """Module, code, defaults, and what the names in it stand for; annotations and positions do not matter.

    Numba's files name the modules of functions and classes, so what moved to another is another function.
    """
    add(f"{function.__module__}\x1e".encode())
    _add_value(add, function.__code__, seen)
    _add_value(add, function.__defaults__, seen)
    for cell in function.__closure__ or ():
        _add_value(add, cell.cell_contents, seen)
    for name in sorted(_names(function.__code__)):
        if name in function.__globals__:
            add(name.encode())
            _add_value(add, function.__globals__[name], seen)


def callees(value: Any) -> set[Any]:
    """A compiled function, and all compiled functions that it calls."""
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


def _is_ours(module: str | None) -> bool:
    """Whether a function's code may change without the version of a library."""
    return (module or "").partition(".")[0] not in {"numba", "llvmlite", "numpy", "math", "builtins"}
