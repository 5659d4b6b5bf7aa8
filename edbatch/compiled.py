"""Functions that Numba compiles: the one decorator, and the cache on disk that serves all of them.

A compiled function is found again by what it is made of: its byte code and options, those of all functions that it
calls, the constants that it reads, the types of its arguments, the versions of Python, NumPy, Numba and llvmlite, and
the processor. So nothing stale is ever run, wherever the change was, and every virtual environment with the same
versions shares the same files.
"""

# mypy: disable-error-code="import-untyped,no-untyped-call,attr-defined"

from __future__ import annotations

import hashlib
import os
import pickle
import platform
import sys
import threading
import warnings
from collections.abc import Callable
from enum import EnumMeta
from functools import cache
from pathlib import Path
from time import thread_time
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar, overload
from weakref import WeakSet

import numpy as np

from edbatch.errors import EdBatchError, EdBatchWarning
from edbatch.files import write_atomically
from edbatch.stopwatch import compiling

with compiling:
    import llvmlite
    import llvmlite.binding as llvm
    import numba
    from numba.core import config, registry, serialize, sigutils, types
    from numba.core.caching import NullCache
    from numba.core.compiler import CompileResult
    from numba.core.dispatcher import Dispatcher
    from numba.core.extending import _Intrinsic

# What LLVM cannot see to lie apart it checks at run time, and gives up vector instructions where that takes more than
# a few checks: 17 ns instead of 3 an entry of a TreeLSTM's derivative, which writes to six places. And it checks once
# for all rows, not row by row, so that reading and writing parts of the same rows looks like an overlap: 15 ns instead
# of 2. The settings are the process's: other code that Numba compiles later is checked the same way.
llvm.set_option("edbatch", "-runtime-memory-check-threshold=1000")
llvm.set_option("edbatch", "-hoist-runtime-checks=false")

_MAGIC = b"edbatch 1\n"
_DIGEST = 20  # bytes


def cache_folder() -> Path:
    """Where compiled code is kept: `edbatch` in the user's cache folder; may be deleted at any time."""
    root = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return Path(root or Path.home() / ".cache") / "edbatch" / "compiled"


# A small function is interpreted by Python until that has taken so many seconds, or its arrays have more entries than
# this. Compiling takes 0.1 to 5 s a function, interpreting some microseconds an entry.
PATIENCE = 0.2
SMALL = 20_000

functions: WeakSet[Compiled] = WeakSet()  # all there are in this process


class Compiled(registry.CPUDispatcher):
    """A function that is compiled when it is first called, or when that pays, once per machine.

    Integers are int64, whatever the caller has: one version of a function serves all of them.

    Args:
        function: to be compiled.
        small: its time is about linear in the size of its arrays, and Python can run it too: it does until compiling
            pays, together with the small functions that it calls. What is on disk already pays at once.
        options: see `numba.njit`.
    """

    def __init__(self, function: Callable, small: bool, options: dict[str, Any]) -> None:
        super().__init__(function, targetoptions={"nopython": True, "boundscheck": None, **options})
        self._cache = _Disk(self)
        self._pays = not small
        self._small = small
        self._interpreted = -1.0  # seconds; below zero: nobody has looked on the disk
        functions.add(self)

    def __call__(self, *args: Any) -> Any:
        """Run it, in Python or compiled."""
        if self._small and _thread.interpreting:
            return self.py_func(*args)
        if not self._pays:
            self._pays = self._judge(args)
            if not self._pays:
                return self._interpret(args)
        return super().__call__(*args)

    def _judge(self, args: tuple[Any, ...]) -> bool:
        """Whether to use compiled code from now on."""
        if self._interpreted < 0:
            self._interpreted = 0.0
            kinds = [self.typeof_pyval(value) for value in args]
            signature = tuple(map(_wide, self.fold_argument_types(kinds, {})[1]))
            if self._cache.has(signature):
                return True
        return self._interpreted > PATIENCE or _entries(args) > SMALL

    def _interpret(self, args: tuple[Any, ...]) -> Any:
        start = thread_time() - compiling.seconds
        _thread.interpreting = True
        try:
            with np.errstate(over="ignore"):  # compiled integers wrap around in silence
                return _plain(self.py_func(*args))
        finally:
            _thread.interpreting = False
            self._interpreted += max(0.0, thread_time() - compiling.seconds - start)

    def compile(self, sig: Any) -> Any:
        """The entry point of the version for a signature; compiled, or loaded, if there is none."""
        given, _ = sigutils.normalize_signature(sig)
        signature = tuple(map(_wide, given))
        found = self.overloads.get(signature)
        if found is not None:
            return found.entry_point
        with compiling:
            return super().compile(signature)


def _plain(result: Any) -> Any:
    """What compiled code gives back: Python's numbers instead of NumPy's."""
    if isinstance(result, np.generic):
        return result.item()
    if isinstance(result, tuple):
        items = map(_plain, result)
        return type(result)(*items) if hasattr(result, "_fields") else tuple(items)
    return result


def _entries(values: tuple[Any, ...]) -> int:
    """Of all arrays among these, and in tuples among these."""
    total = 0
    for value in values:
        if isinstance(value, np.ndarray):
            total += value.size
        elif isinstance(value, tuple):
            total += _entries(value)
    return total


_F = TypeVar("_F", bound=Callable)


@overload
def compiled(function: _F, /) -> _F: ...
@overload
def compiled(*, small: bool = False, **options: Any) -> Callable[[_F], _F]: ...
def compiled(function: Any = None, /, *, small: bool = False, **options: Any) -> Any:
    """Have Numba compile a function (without Python objects) when it is first called, and keep the code on disk.

    Args:
        function: calls compiled functions and NumPy, and reads constants, of its module.
        small: for the loops over graphs and plans, see `Compiled`; not for those over numbers, which have to give the
            same bits always.
        options: of `numba.njit`: error_model, fastmath, inline.

    Example:
        >>> @compiled
        ... def twice(x):
        ...     return x + x
        >>> twice(4)
        8
    """
    if function is None:
        return lambda function: Compiled(function, small, options)
    return Compiled(function, small, options)


def _wide(kind: Any) -> Any:
    """The type that a version of a function is compiled for, given an argument's."""
    kind = types.unliteral(kind)
    return types.int64 if isinstance(kind, types.Integer) and kind.signed else kind


class _Thread(threading.local):
    interpreting = False  # whether this thread runs small functions in Python now


_thread = _Thread()


class _Disk(NullCache):
    """Numba's cache of one function, in our folder. Whatever is wrong with it, the function is compiled."""

    def __init__(self, function: Compiled) -> None:
        self._made_of = function

    @property
    def cache_path(self) -> str:
        """The folder."""
        return str(cache_folder())

    def _key(self, signature: Any) -> bytes:
        digest = hashlib.blake2b(environment(), digest_size=_DIGEST)
        digest.update(fingerprint(self._made_of))
        for kind in signature:
            digest.update(_type_text(kind).encode())
        return digest.digest()

    def has(self, signature: Any) -> bool:
        """Whether something was compiled before."""
        return _path(self._key(signature)).exists()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What was compiled before; None: nothing, or nothing that can be used."""
        content = kept(self._key(sig))
        if content is None:
            return None
        try:
            target_context.refresh()
            return CompileResult._rebuild(target_context, *pickle.loads(content))
        except Exception as error:  # of another build of these versions: any error there may be
            _warn(f"{_path(self._key(sig))}: cannot be used ({type(error).__name__}: {error})")
            return None

    def save_overload(self, sig: Any, cres: Any) -> None:
        """Keep what was compiled."""
        if cres.library.has_dynamic_globals:
            raise EdBatchError(f"{cres.fndesc.qualname}: has addresses of this process in it and cannot be kept")
        keep(self._key(sig), serialize.dumps(cres._reduce()))


def _path(key: bytes) -> Path:
    return cache_folder() / f"{key.hex()}.bin"


def kept(key: bytes) -> bytes | None:
    """What was kept under a key (a digest of all that it depends on); None: nothing, or it is damaged."""
    path = _path(key)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        _warn(f"{path}: cannot be read ({error.strerror or error})")
        return None
    content = data[len(_MAGIC) + 2 * _DIGEST :]
    if not data.startswith(_MAGIC + key + _checksum(content)):
        _warn(f"{path}: damaged")
        return None
    return content


def keep(key: bytes, content: bytes) -> None:
    """Keep something for later processes; where that cannot be done, say so once."""
    path = _path(key)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, _MAGIC + key + _checksum(content) + content)
    except (OSError, EdBatchError) as error:
        _warn(str(error))


def _checksum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST).digest()


_warned = threading.Event()


def _warn(problem: str) -> None:
    """Say that the cache does not work, once per process."""
    if not _warned.is_set():
        _warned.set()
        warnings.warn(
            f"compiled code is not kept, or not found again: {problem}; it is compiled anew, which takes seconds in "
            f"every process (the folder {cache_folder()} may be deleted, or another be named by XDG_CACHE_HOME)",
            EdBatchWarning,
            stacklevel=3,
        )


@cache
def environment() -> bytes:
    """What compiled code depends on beside its source: versions, processor, settings of the compiler."""
    from numba.core.registry import cpu_target

    settings = (config.OPT, config.LOOP_VECTORIZE, config.SLP_VECTORIZE, config.BOUNDSCHECK, config.DEBUGINFO_DEFAULT)
    known = (
        sys.implementation.cache_tag, platform.python_version(), np.__version__, numba.__version__,
        llvmlite.__version__, cpu_target.target_context.codegen().magic_tuple(), settings,
    )  # fmt: skip
    return repr(known).encode()


def _type_text(kind: Any) -> str:
    """A Numba type as text; of a named tuple with its fields."""
    fields = f"{kind.fields}{[*map(_type_text, kind.types)]}" if isinstance(kind, types.BaseNamedTuple) else ""
    return f"{kind}{fields},"


def fingerprint(value: Any) -> bytes:
    """A digest of a function's code and of all that it reads, or of a constant.

    Raises:
        TypeError: something that compiled code must not depend on.
    """
    digest = hashlib.blake2b(digest_size=_DIGEST)
    _add_value(digest.update, value, set())
    return digest.digest()


def _add_value(add: Callable[[bytes], None], value: Any, seen: set[int]) -> None:
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
        elif id(value) not in seen:  # else: calls itself
            seen.add(id(value))
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
        text("number", value.dtype)
        add(value.tobytes())
    elif value is None or isinstance(value, bool | int | float | str | bytes | types.Type | np.dtype | slice):
        text(type(value).__name__, repr(value))
    elif value is Ellipsis or type(value).__module__ in ("builtins", "typing", "types", "ctypes"):
        text("built in", getattr(value, "__name__", type(value).__name__))
    else:
        raise TypeError(f"compiled code must not depend on {value!r}")


def _add_function(add: Callable[[bytes], None], function: FunctionType, seen: set[int]) -> None:
    """The code, defaults, and what the names in it stand for; annotations and positions do not matter."""
    _add_value(add, function.__code__, seen)
    _add_value(add, function.__defaults__, seen)
    for cell in function.__closure__ or ():
        _add_value(add, cell.cell_contents, seen)
    for name in sorted(_names(function.__code__)):
        if name in function.__globals__:
            add(name.encode())
            _add_value(add, function.__globals__[name], seen)


def _names(code: CodeType) -> set[str]:
    inner = (_names(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*inner)


def _is_ours(module: str | None) -> bool:
    """Whether a function's code may change without the version of a library."""
    return (module or "").partition(".")[0] not in {"numba", "llvmlite", "numpy", "math", "builtins"}
