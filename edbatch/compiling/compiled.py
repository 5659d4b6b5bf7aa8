"""Functions that Numba compiles: the one decorator, and the cache on disk that serves all of them.

A compiled function is found again by what it is made of: its byte code and options, those of all functions that it
calls, the constants that it reads, the types of its arguments, versions, and the processor. So nothing stale is run.
"""

# mypy: disable-error-code="import-untyped,no-untyped-call,attr-defined"

from __future__ import annotations

import hashlib
import pickle
import secrets
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any, TypeVar, overload
from weakref import WeakSet

import numpy as np

from edbatch.base.context_stack import contextmanager
from edbatch.base.locking import signals_deferred
from edbatch.base.records import WORD
from edbatch.base.stopwatch import compiling, processor_time
from edbatch.errors import EdBatchError

with compiling:
    import llvmlite.binding as llvm
    import numba  # noqa: F401 (as a whole, and first: threads may be importing it)
    from numba.core import registry, serialize, sigutils, types
    from numba.core.bytecode import FunctionIdentity
    from numba.core.caching import NullCache
    from numba.core.compiler import CompileResult

    from edbatch.compiling import cache, numba_parts  # noqa: F401 (what is boxed so)
    from edbatch.compiling.fingerprint import DIGEST, callees, fingerprint, type_text

# What LLVM cannot see to lie apart it checks at run time, and gives up vector instructions where that takes more than
# a few checks; and it checks once for all rows, so that reading and writing parts of the same rows looks like an
# overlap. (Generated kernels say that nothing overlaps.) The settings are the process's.
llvm.set_option("edbatch", "-runtime-memory-check-threshold=1000")
llvm.set_option("edbatch", "-hoist-runtime-checks=false")

# Numba tells closures of one function apart by a number, which is part of the names in machine code, and counts from 1
# in every process. LLVM takes all of one name for one function: a caller would reach another closure than its own.
FunctionIdentity._unique_ids = iter(partial(secrets.randbits, 62), -1)  # type: ignore[assignment]

# A small function is interpreted by Python until that has taken this share of what compiling it takes, and of a second
# at most; or its arrays have more entries than this. Compiling takes so many seconds for each byte of byte code.
PATIENCE, A_BYTE = 0.5, 0.5e-3
SMALL = 1_000_000
LONG, SECONDS = 2.5, 0.3  # a compilation that is announced; that of a function

functions: WeakSet[Compiled] = WeakSet()  # all there are in this process
interpreting = ContextVar("edbatch_interpreting", default=False)  # whether small functions run in Python now
_said = threading.Event()


class Compiled(registry.CPUDispatcher):
    """A function that is compiled when it is first called, once per machine; see `numba.njit` for its options.

    Integers are int64, whatever the caller has: one version of a function serves all of them. It is called by Numba's
    code in C; a `__call__` in Python would take as long as a small loop.
    """

    def __init__(self, function: Callable, options: dict[str, Any]) -> None:
        settings = {"nopython": True, "boundscheck": None, "no_cfunc_wrapper": True, **options}
        super().__init__(function, targetoptions=settings)
        self._cache = _Disk(self)
        functions.add(self)

    def compile(self, sig: Any) -> Any:
        """Return the entry point of the version for a signature; compiled, or loaded, if there is none."""
        signature = tuple(map(_wide, sigutils.normalize_signature(sig)[0]))
        if signature in self.overloads:
            return self.overloads[signature].entry_point
        # An interrupt in one of Numba's generators would end it for the whole process, and all compiling with it.
        with signals_deferred(), compiling:
            return super().compile(signature)


class Small(Compiled):
    """A function whose time is about linear in the size of its arrays, and that Python can run too.

    It does until compiling pays, together with the small functions that it calls, or has been done before. Then it is
    one of the class `Compiled`, unless functions that are interpreted call it.
    """

    def __init__(self, function: Callable, options: dict[str, Any]) -> None:
        super().__init__(function, options)
        self._pays = False
        self._is_called = False  # by a small function that was interpreted
        self._interpreted = -1.0  # processor seconds; below zero: nobody has looked on the disk
        self._cost = 0.0  # of compiling it, at most a second

    def __call__(self, *args: Any) -> Any:
        """Run it, in Python or compiled."""
        if interpreting.get():
            return self.py_func(*args)
        # From here on another thread may make it one of the class `Compiled`, which has no such methods.
        if not self._pays and not Small._judge(self, args):
            return Small._interpret(self, args)
        if not self._is_called:
            self.__class__ = Compiled  # type: ignore[assignment]
        return registry.CPUDispatcher.__call__(self, *args)

    def _judge(self, args: tuple[Any, ...]) -> bool:
        """Whether to use compiled code from now on."""
        if self._interpreted < 0:
            self._interpreted = 0.0
            kinds = [self.typeof_pyval(value) for value in args]
            signature = tuple(map(_wide, self.fold_argument_types(kinds, {})[1]))
            self._pays = self._cache.has(signature)
            if self._pays:
                return True
            called = callees(self)
            size = sum(len(one.py_func.__code__.co_code) for one in called if not one.overloads)
            self._cost = min(1.0, A_BYTE * size)
            for function in called - {self}:
                if hasattr(function, "_is_called"):
                    function.__class__, function._is_called = Small, True
        self._pays = self._interpreted > PATIENCE * self._cost or _entries(args) > SMALL
        return self._pays

    def _interpret(self, args: tuple[Any, ...]) -> Any:
        start = processor_time()
        try:
            return _plain(copy_context().run(_in_python, self, args))  # with its context, `interpreting` ends
        finally:
            self._interpreted += processor_time() - start


def _in_python(function: Small, args: tuple[Any, ...]) -> Any:
    interpreting.set(True)
    with np.errstate(over="ignore"):  # compiled integers wrap around in silence
        return function.py_func(*args)


@contextmanager
def at_once() -> Iterator[None]:
    """Have functions compiled when they are first called."""
    global PATIENCE
    before, PATIENCE = PATIENCE, -1.0
    try:
        yield
    finally:
        PATIENCE = before


def _plain(result: Any) -> Any:
    """Return what compiled code would: Python's numbers instead of NumPy's."""
    if isinstance(result, np.generic):
        return result.item()
    if isinstance(result, tuple):
        items = map(_plain, result)
        return type(result)(*items) if hasattr(result, "_fields") else tuple(items)
    return result


def _entries(values: tuple[Any, ...]) -> int:
    """Count those of arrays, also in tuples and in directories."""
    arrays = [value for value in values if isinstance(value, np.ndarray)]
    sizes = (int(x[:, 1].sum()) if x.dtype == WORD and x.ndim == 2 else x.size for x in arrays)
    return sum(sizes) + sum(_entries(value) for value in values if isinstance(value, tuple))


_F = TypeVar("_F", bound=Callable)


@overload
def compiled(function: _F, /) -> _F: ...
@overload
def compiled(*, small: bool = False, **options: Any) -> Callable[[_F], _F]: ...
def compiled(function: Any = None, /, *, small: bool = False, **options: Any) -> Any:
    """Have Numba compile a function (without Python objects) when it is first called, and keep the code on disk.

    Args:
        function: calls compiled functions and NumPy, and reads constants, of its module.
        small: see `Small`; not for loops over numbers, which have to give the same bits always.
        options: of `numba.njit`: error_model, fastmath, inline.

    Example:
        >>> @compiled
        ... def twice(x):
        ...     return x + x
        >>> twice(4)
        8
    """
    kind = Small if small else Compiled
    return kind(function, options) if function is not None else lambda function: kind(function, options)


def _wide(kind: Any) -> Any:
    """Return the type that a version of a function is compiled for, given an argument's."""
    kind = types.unliteral(kind)
    if isinstance(kind, types.StarArgTuple | types.StarArgUniTuple):  # `*args` are a tuple to who calls from Python
        return types.BaseTuple.from_types(kind.types)
    return types.int64 if isinstance(kind, types.Integer) and kind.signed else kind


class _Disk(NullCache):
    """Numba's cache of one function, in our folder. Whatever is wrong with it, the function is compiled."""

    def __init__(self, function: Compiled) -> None:
        self._made_of = function

    def _key(self, signature: Any) -> bytes:
        digest = hashlib.blake2b(cache.environment(), digest_size=DIGEST)
        digest.update(fingerprint(self._made_of))
        for kind in signature:
            digest.update(type_text(kind).encode())
        return digest.digest()

    def has(self, signature: Any) -> bool:
        """Whether something was compiled before, and is whole."""
        return cache.kept(self._key(signature)) is not None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What was compiled before; None: nothing, or nothing that can be used."""
        content = cache.kept(key := self._key(sig))
        if content is not None:
            try:
                target_context.refresh()
                return CompileResult._rebuild(target_context, *pickle.loads(content))
            except Exception as error:  # of another build of these versions: any error there may be
                problem = f"cannot be used ({type(error).__name__}: {error})"
                cache.complain(f"{cache.path_of(key)}: {problem}", heals=True)
        self._announce()
        return None

    def _announce(self) -> None:
        """Say, once per process, that the function is about to be compiled, if that takes long."""
        function = self._made_of
        seconds = SECONDS * sum(not other.overloads for other in callees(function))
        if seconds < LONG:
            return
        name = f"{function.__module__.removeprefix('edbatch.')}.{function.__name__}"
        about = f"(about {seconds:.0f} s; all that a program needs, up to a minute; longer on a busy machine)"
        kept = (
            f"machine, once {about}; kept in {cache.cache_folder()}" if cache.works() else f"process {about}; not kept"
        )
        cache.say_once(f"edbatch: compiling {name} for this {kept}", _said)

    def save_overload(self, sig: Any, cres: Any) -> None:
        """Keep what was compiled."""
        if cres.library.has_dynamic_globals:
            raise EdBatchError(f"{cres.fndesc.qualname}: has addresses of this process in it and cannot be kept")
        cache.keep(self._key(sig), serialize.dumps(cres._reduce()))
