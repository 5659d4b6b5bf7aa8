"""Watching a cell's function while it is traced: what it reads besides its arguments.

Python does not say which attribute, global or closure variable is read. It does say which functions run, and a
function's code says by which names it reads: every name is looked for in all that the function can see - its
globals and closure, its arguments and what it is returned, and what these lead to by names of its code, or as parts of
containers. What is found is more than what was read, if other objects have attributes of the same names; a trace that
is made again in vain is found to be equal, and compiled once.
"""

from __future__ import annotations

import dis
import functools
import gc
import io
import operator
import re
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum
from importlib.util import resolve_name
from types import (
    BuiltinFunctionType,
    CodeType,
    FrameType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    SimpleNamespace,
    WrapperDescriptorType,
)
from typing import Any
from weakref import ReferenceType

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.graph.guard import ATOMS, CONTENTS, MISSING, Get, Guard, Read, weak_get
from edbatch.graph.parameters import Parameter
from edbatch.graph.watch_classes import arrivals, holders, is_data, is_standard
from edbatch.graph.watch_parameters import READS_VALUES, parameter_reads

# Of these, what runs and what they hold do not count: they compute the same of the same.
_OURS = ["graph", "kernels", "runtime", "memory", "policy", "devices", "compiled", "errors", "exact", "exclusive"]
_PURE = ("numpy", "msgspec", *(f"edbatch.{name}" for name in _OURS))

_READS_FILES = (open, input)
_READS_OF_FILES = {"read", "read1", "readinto", "readline", "readlines", "getvalue", "getbuffer", "tell", "peek"}
_READS_STATE = {"getcontext": "decimal", "geterr": "numpy"}  # of what is kept for a thread, where nobody can look
_MAY_READ_FILES = ("importlib", "linecache", "tokenize", "inspect", "logging", "traceback", "edbatch")

# What reads attributes whose names may be computed: builtins, and names of code.
_BY_NAME = (getattr, hasattr, vars, dir)
_NAMES_BY_NAME = {"__dict__", "__getattribute__", "attrgetter", "methodcaller"}
# What reads classes past nearer ones, or past objects.
_NAMES_OF_CLASSES = {"super", "type", "__class__", "__mro__", "__bases__", "__base__", "mro"}

# Nothing a number follows from; whatever else is no object of a class written in Python cannot be looked into.
_INERT = (
    *ATOMS, type, ModuleType, BuiltinFunctionType, MethodWrapperType, WrapperDescriptorType, MethodDescriptorType,
    GetSetDescriptorType, MemberDescriptorType, property, classmethod, staticmethod, CodeType, np.ufunc, np.dtype,
    operator.itemgetter, type(threading.Lock()), type(threading.RLock()), io.IOBase,
)  # fmt: skip
_IMMUTABLE = ("datetime", "decimal", "fractions", "re", "uuid", "pathlib", "zoneinfo", "functools", "typing", "types")

_LARGE = 1000  # parts of a container whose name the code does not mention


@dataclass(eq=False)
class Ran:
    """What is known of a function that ran.

    Args:
        code: its code.
        scope: its globals.
        objects: per run its arguments, what was returned to it, and its variables at the end, by `id`, with a name.
        is_dynamic: whether it read attributes of computed names.
        reads_scope: whether it read globals of computed names.
        gave_nothing: whether it returned None, or ended by an error, which looks alike from outside.
        names: of attributes that it read by texts that are no names.
    """

    code: CodeType
    scope: dict[str, Any]
    objects: tuple[dict[int, tuple[str, Any]], dict[int, tuple[str, Any]]] = field(default_factory=lambda: ({}, {}))
    is_dynamic: bool = False
    reads_scope: bool = False
    gave_nothing: bool = False
    names: set[str] = field(default_factory=set)

    def lasting(self) -> list[tuple[str, Any]]:
        """The objects that are not made anew each time it runs."""
        first, second = self.objects
        if first and second:
            first, second = _opened(first, second), _opened(second, first)
            return [found for key, found in second.items() if key in first]
        return [*first.values(), *second.values()]


class Watch:
    """What runs while a cell is traced, which is done twice."""

    def __init__(self) -> None:
        self._ran: dict[CodeType, Ran] = {}
        self._runs = 0
        self._of_parameters: dict[
            Any, tuple[Any, Read]
        ] = {}  # each with what it reads of, so that no `id` is used twice
        self._refused: str | None = None

    def run(self, function: Callable[[], Any]) -> Any:
        """Run a function and see what it runs.

        Raises:
            EdBatchError: it read something that cannot be watched.
        """
        before: Any = sys.getprofile()
        thread = threading.get_ident()

        def event(frame: FrameType, kind: str, about: Any) -> None:
            if threading.get_ident() == thread:
                self._see(frame, kind, about)
            if callable(before):
                before(frame, kind, about)

        sys.setprofile(event)
        try:
            result = function()
        finally:
            sys.setprofile(before if before is None or callable(before) else None)
            if before is not None and not callable(before):
                before.enable()  # a profiler written in C, up to Python 3.11
            self._runs += 1
        if self._refused is not None:
            raise EdBatchError(self._refused)
        return result

    def guard(self, function: Any, owner: Any) -> Guard:
        """What must stay as it is now.

        Args:
            function: of the cell.
            owner: whose dictionary a guard is given when it is asked; None: nobody's.

        Raises:
            EdBatchError: it read something that cannot be watched; names it.
        """
        return Guard(
            [*_Search(self._ran, owner).reads_of(function), *(read for _, read in self._of_parameters.values())]
        )

    def _see(self, frame: FrameType, kind: str, about: Any) -> None:
        code, scope = frame.f_code, frame.f_globals
        module = scope.get("__name__", "")
        if kind == "call" and (module, code.co_qualname) in READS_VALUES:
            self._refused = self._refused or (
                f"it reads a value, by {code.co_qualname}; a cell is traced once, and would keep what is there now. "
                "Use the parameter or expression itself (eb.stop_gradient stops its gradient), or pass the value as an "
                "argument"
            )
        if kind == "c_call" and about in _READS_FILES and not module.startswith(_MAY_READ_FILES):
            self._refused = f"it calls {about.__name__}(); a cell is traced once, and would keep what was read then"
        if kind in ("call", "c_call") and (refused := _state_read(frame, kind, about)):
            self._refused = self._refused or f"it calls {refused}(); a cell is traced once, and would keep what it gave"
        if is_pure(module):
            if kind == "call" and module.startswith("edbatch") and (found := parameter_reads(frame)) is not None:
                self._note_parameters(frame, *found)
            return
        back = frame.f_back
        if is_standard(module) and (back is None or back.f_code not in self._ran):
            return  # called by what is pure
        ran = self._ran.get(code)
        if ran is None:
            ran = self._ran[code] = Ran(code, scope)
        seen = ran.objects[min(self._runs, 1)]
        if kind == "c_call":
            if about in _BY_NAME:
                ran.is_dynamic = True
            ran.reads_scope |= about is globals
            owner = getattr(about, "__self__", None)
            if isinstance(owner, str) and about.__name__ in ("format", "format_map"):
                ran.names.update(re.findall(r"[.\[](\w+)", owner))
            if owner is not None and not isinstance(owner, ModuleType):
                seen[id(owner)] = "something", owner
        elif kind in ("call", "return"):
            for name, value in frame.f_locals.items():
                seen[id(value)] = name, value
            ran.gave_nothing |= kind == "return" and about is None
            if kind == "return" and back is not None and back.f_code in self._ran:
                caller = self._ran[back.f_code].objects[min(self._runs, 1)]
                caller.setdefault(id(about), (f"{code.co_name}()", about))

    def _note_parameters(self, frame: FrameType, holder: Any, read: Read, found: list[Parameter]) -> None:
        """Watch the place, and what the user's function that asked is given."""
        self._of_parameters[id(holder), read.path] = holder, read
        asks: FrameType | None = frame
        while asks is not None and asks.f_code not in self._ran:
            asks = asks.f_back
        if asks is not None:
            seen = self._ran[asks.f_code].objects[min(self._runs, 1)]
            for one in found:
                seen.setdefault(id(one), (f"parameter {one.name!r}", one))


class _Search:
    """Finds all places that functions can have read."""

    def __init__(self, ran: dict[CodeType, Ran], owner: Any) -> None:
        self.ran = ran
        self._owner = owner
        self._reads: dict[Any, Read] = {}
        self._functions: dict[CodeType, list[FunctionType]] = {}
        self._lacking: dict[int, tuple[type, str, set[str]]] = {}
        self._kept: list[Any] = []  # so that no `id` is used twice

    def reads_of(self, function: Any) -> Iterable[Read]:
        """All of them."""
        self._note(function)
        todo = [_Sight(self, ran) for ran in self.ran.values()]
        for sight in todo:
            sight.look_around()
        done: set[FunctionType] = set()
        inner = {part for code in self.ran for part in _inner(code)}
        while True:
            found = [(s, f) for s in todo for f in self._functions.get(s.ran.code, ()) if f not in done]
            if not found:
                missing = [s for s in todo if s.ran.code.co_freevars and s.ran.code not in self._functions]
                for sight in missing:
                    if sight.ran.code not in inner:
                        self._functions[sight.ran.code] = [
                            f for f in gc.get_referrers(sight.ran.code) if isinstance(f, FunctionType)
                        ]
                if not any(self._functions.get(s.ran.code) for s in missing):
                    break
            for sight, one in found:
                done.add(one)
                sight.look_into(one)
        for kind, path, names in self._lacking.values():
            get = arrivals(kind, names)
            if get is not None:
                self.read(kind, get, None, f"{path}: what class {kind.__name__} has got", ())
        return self._reads.values()

    def lacks(self, kind: type, names: Iterable[str], path: str) -> None:
        """Note that names were looked for in a class, of which each of its bases may get some that it has not."""
        self._lacking.setdefault(id(kind), (kind, path, set()))[2].update(names)

    def read(self, holder: Any, get: Get, key: Any, path: str, value: Any) -> None:
        """Note a place of a holder."""
        self._kept.append(holder)
        own = isinstance(holder, dict) and self._owner is not None and holder is getattr(self._owner, "__dict__", None)
        self._reads.setdefault((id(holder), key), Read(None if own else get, key, path, value))

    def _note(self, value: Any) -> None:
        """Note a function, and those that it wraps."""
        while value is not None:
            if isinstance(value, FunctionType):
                if value in (known := self._functions.setdefault(value.__code__, [])):
                    return
                known.append(value)
            value = getattr(value, "__wrapped__", None) if callable(value) else None


class _Sight:
    """What one function's code can see."""

    def __init__(self, search: _Search, ran: Ran) -> None:
        self.ran = ran
        self._search = search
        # Of functions inside it too: a comprehension is one, whose variables are seen at its end only.
        self._codes = (ran.code, *_inner(ran.code))
        self._names = dict.fromkeys(name for code in self._codes for name in code.co_names)
        self._names |= dict.fromkeys(ran.names)
        texts = (x for code in self._codes for x in code.co_consts if isinstance(x, str))
        self._texts = dict.fromkeys(x for x in texts if x.isidentifier())
        self._seen: set[int] = set()
        self._strict = not is_standard(ran.scope.get("__name__", ""))
        self._dynamic: set[type] = set()
        self._past = not _NAMES_OF_CLASSES.isdisjoint(self._names)
        steps = {step.opname for code in self._codes for step in dis.get_instructions(code)}
        # Whether it may look for an attribute in vain: it handles an error, or may have ended by one.
        self._in_vain = "PUSH_EXC_INFO" in steps or ran.gave_nothing
        self._matches = "MATCH_CLASS" in steps
        if self._matches:
            tuples = (x for code in self._codes for x in code.co_consts if isinstance(x, tuple))
            matched = (x for part in tuples for x in part if isinstance(x, str))
            self._names |= dict.fromkeys(["__match_args__", *matched])

    def look_around(self) -> None:
        """At globals, imports, arguments and what was returned."""
        scope, lasting = self.ran.scope, self.ran.lasting()
        ran = self._search.ran
        is_dynamic = any(code in ran and ran[code].is_dynamic for code in self._codes)
        if is_dynamic or not _NAMES_BY_NAME.isdisjoint(self._names):
            seen = [value for _, value in lasting] + [scope[name] for name in self._names if name in scope]
            self._dynamic = {type(value) for value in seen if _is_python(type(value)) or hasattr(value, "__dict__")}
            self._names |= self._texts
        if self.ran.reads_scope:
            for name in [*self._texts, *(name for name, value in scope.items() if value.__class__ in ATOMS)]:
                self._place(scope, scope.get, name, name)
        for instruction in dis.get_instructions(self.ran.code):
            name = instruction.argval
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                self._place(scope, scope.get, name, name)
            elif instruction.opname == "IMPORT_NAME":
                for form in (name, f".{name}", f"..{name}"):
                    try:
                        module = sys.modules.get(resolve_name(form, scope.get("__package__") or None))
                    except ImportError:
                        continue
                    self.visit(module, form)
        for name, value in lasting:
            if name in self.ran.code.co_freevars:
                continue  # see `look_into`
            if isinstance(value, CONTENTS) and not isinstance(value, tuple | frozenset | np.generic):
                self._search.read(value, lambda key, missing, value=value: value, None, name, value)  # type: ignore[misc]
            self.visit(value, name, checked=False)

    def look_into(self, function: FunctionType) -> None:
        """At closure and defaults."""
        names = function.__code__.co_freevars
        for name, cell in zip(names, function.__closure__ or (), strict=True):
            self._place(cell, functools.partial(getattr, cell), "cell_contents", name)
        for name in ("__code__", "__defaults__", "__kwdefaults__"):
            if getattr(function, name):
                get = functools.partial(getattr, function)
                self._place(function, get, name, f"{function.__name__}.{name}")

    def _place(self, holder: Any, get: Get, key: Any, path: str, absent: bool = True, checked: bool = True) -> None:
        value = get(key, MISSING)
        if value is not MISSING or absent:
            self._search.read(holder, get, key, path, value)
        if value is not MISSING:
            self.visit(value, path, checked)

    def visit(self, value: Any, path: str, checked: bool = True) -> None:
        """Look at a value, and at what the code's names lead to from there.

        Raises:
            EdBatchError: `checked`, and it cannot be looked into.
        """
        holds_objects = isinstance(value, np.ndarray) and value.dtype.hasobject
        if id(value) in self._seen:
            return
        self._seen.add(id(value))
        self._search._kept.append(value)
        if is_pure(type(value).__module__) and not holds_objects:
            self._extras(value, path)
            return
        self._search._note(value)
        if isinstance(value, ModuleType):
            if not is_pure(value.__name__):
                for name in self._names:
                    self._place(vars(value), vars(value).get, name, f"{path}.{name}", absent=False)
        elif isinstance(value, type):
            self._class(value, path)
        elif isinstance(value, Enum):
            self._extras(value, path)
        elif isinstance(value, FunctionType):
            for name in self._names:
                self._place(vars(value), vars(value).get, name, f"{path}.{name}", absent=False)
        elif isinstance(value, type(functools.lru_cache(len))):
            for part in _cached(value):
                self.visit(part, f"{path}()", checked)
        elif isinstance(value, CONTENTS):
            for name, part in _parts(value):
                self.visit(part, f"{path}{name}", checked)
            if hasattr(value, "__dict__"):
                self._object(value, path)
        elif isinstance(value, MethodType):
            self.visit(value.__self__, path, checked)
            self._search._note(value.__func__)
        elif isinstance(value, functools.partial):
            self.visit([value.func, value.args, value.keywords], path, checked)
        elif isinstance(value, slice):
            self.visit([value.start, value.stop, value.step], path, checked)
        elif isinstance(value, ReferenceType):
            self.visit(value(), f"{path}()", checked)
        elif isinstance(value, ContextVar):
            self._place(value, lambda key, missing: key.get(missing), value, f"{path}.get()")
        elif _is_python(type(value)):
            self._object(value, path)
        elif isinstance(value, ATOMS):
            if type(value) not in ATOMS:
                self._object(value, path)
        elif checked and self._strict and not isinstance(value, _INERT) and type(value).__module__ not in _IMMUTABLE:
            raise EdBatchError(
                f"it reads {path}, of type {type(value).__module__}.{type(value).__qualname__}, whose changes cannot "
                "be seen; use numbers, NumPy arrays, parameters or objects of Python classes, or pass it as an argument"
            )

    def _extras(self, value: Any, path: str) -> None:
        """At numbers among the attributes of what is else no object that holds any."""
        own: Any = getattr(value, "__dict__", {})
        for name in self._names:
            if name in own and isinstance(own[name], ATOMS):
                self._place(own, own.get, name, f"{path}.{name}")

    def _class(self, value: type, path: str) -> None:
        """At what a class holds for the code's names, or may get."""
        self._search.lacks(value, self._names, path)
        for name in self._names:
            self._held(value, name, path)
        if not is_standard(type(value).__module__) and type(value) is not type:
            self._class(type(value), f"type({path})")

    def _held(self, kind: type, name: str, path: str) -> None:
        for base in holders(kind, name, every=self._past):
            if base is not object and not is_pure(base.__module__):
                self._place(base, vars(base).get, name, f"{path}.{name}")

    def _object(self, value: Any, path: str) -> None:
        kind, own = type(value), getattr(value, "__dict__", None)
        self._search.read(value, weak_get(value), "__class__", f"{path}.__class__", kind)
        in_vain = kind in self._dynamic or self._in_vain or hasattr(kind, "__getattr__")
        names = dict.fromkeys([*self._names, *self._matched(kind)])
        if kind in self._dynamic and own is not None:
            names |= dict.fromkeys([*self._texts, *(name for name in own if not name.startswith("_cell_"))])
        self._search.lacks(kind, names, path)
        for name in names:
            where = f"{path}.{name}"
            named = name in self._names or name in self._texts
            base = next(holders(kind, name, every=False), None)
            held = None if base is None else vars(base)[name]
            if own is not None and (name in own or base is not None or in_vain):
                large = not named and isinstance(own.get(name), CONTENTS) and _size(own[name]) > _LARGE
                if not large:
                    self._place(own, own.get, name, where, checked=named)
            if isinstance(held, MemberDescriptorType):
                self._place(value, weak_get(value), name, where)
            elif base is not None and (own is None or name not in own or self._past or is_data(held)):
                self._held(kind, name, path)

    def _matched(self, kind: type) -> Iterator[str]:
        """The attributes that a pattern of `match` reads of an object by their positions."""
        if self._matches:
            for base in kind.__mro__:
                yield from vars(base).get("__match_args__", ())


def _state_read(frame: FrameType, kind: str, about: Any) -> str | None:
    """The name of a function that reads what nobody can watch, if that is what a user's function calls."""
    caller = frame if kind == "c_call" else frame.f_back
    module = "" if caller is None else caller.f_globals.get("__name__", "")
    if is_pure(module) or is_standard(module):
        return None
    name = about.__name__ if kind == "c_call" else frame.f_code.co_name
    if isinstance(getattr(about, "__self__", None), io.IOBase) and name in _READS_OF_FILES:
        return f"{type(about.__self__).__name__}.{name}"
    home = (about.__module__ if kind == "c_call" else frame.f_globals.get("__name__")) or ""
    return f"{_READS_STATE[name]}.{name}" if home.lstrip("_").startswith(_READS_STATE.get(name, "?")) else None


@functools.lru_cache(1000)
def is_pure(module: str) -> bool:
    """Whether a module is one of those that compute the same of the same."""
    return any(module == one or module.startswith(f"{one}.") for one in _PURE) or module == "edbatch"


def _is_python(kind: type) -> bool:
    """Whether all that an object holds are attributes: its classes are written in Python."""
    return all(
        base is object or base is SimpleNamespace or (base.__flags__ & 1 << 9 and not _has_state(base))
        for base in kind.__mro__
    )


def _has_state(kind: type) -> bool:
    """Whether objects have more than dictionary, weak references and slots by a class (which a C compiler made)."""
    slots = vars(kind).get("__slots__", ())
    count = 1 if isinstance(slots, str) else len(tuple(slots))
    base = kind.__base__.__basicsize__ if kind.__base__ is not None else 0
    return kind.__basicsize__ - base > 8 * (count + 2)


def _cached(function: Any) -> Iterator[Any]:
    """What a function that remembers its results has returned."""
    for held in gc.get_referents(function):
        for part in held.values() if isinstance(held, dict) else ():
            links = gc.get_referents(part) if type(part).__module__ == "functools" else [part]
            yield from (one for one in links if type(one).__module__ != "functools")


def _opened(seen: dict[int, tuple[str, Any]], other: dict[int, Any]) -> dict[int, tuple[str, Any]]:
    """With what those of the containers hold that are made anew, and are not among the others."""
    found, todo = dict(seen), deque(seen.values())
    while todo:
        name, value = todo.popleft()
        if isinstance(value, CONTENTS) and id(value) not in other and _size(value) <= _LARGE:
            fresh = {id(part): (f"{name}{at}", part) for at, part in _parts(value) if id(part) not in found}
            found |= fresh
            todo.extend(fresh.values())
    return found


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """The parts of a container, with names."""
    if isinstance(value, dict | MappingProxyType):
        for key, part in value.items():
            yield f"[{key!r}]", part
            yield f" (key {key!r})", key
    elif isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            yield from ((f"[{at}]", part) for at, part in enumerate(value.ravel().tolist()))
    elif isinstance(value, list | tuple | deque):
        yield from ((f"[{at}]", part) for at, part in enumerate(value))
    elif isinstance(value, set | frozenset):
        yield from ((" (one of it)", part) for part in value)


def _size(value: Any) -> int:
    return value.size if isinstance(value, np.ndarray) else 1 if isinstance(value, np.generic) else len(value)


def _inner(code: CodeType) -> Iterator[CodeType]:
    """The codes of functions that are made when this one runs."""
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield part
            yield from _inner(part)
