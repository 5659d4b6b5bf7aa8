"""Recording: what is done for every node, in C where the extension was built, else in Python, with the same results.

A caller knows, for the specs of its operands, the type of the node that a call adds (an inline cache). What it does not
know or expect - a first call, an array, a parameter alone, an expression of another graph - goes to its slow function,
which records the node and has the caller learn it.

The environment variable `EDBATCH_PURE_PYTHON`, if it is set to 1, leaves the extension aside.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from functools import update_wrapper
from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from edbatch.base.exact import kinds
from edbatch.base.exclusive import raise_soon
from edbatch.base.records import packing
from edbatch.graph.spec import ParameterSpec

_c: Any = None
if os.environ.get("EDBATCH_PURE_PYTHON") != "1":
    with suppress(ImportError):  # there was no compiler
        _c = import_module("edbatch.graph._recorder")

#: Whether recording is in C.
IN_C = _c is not None

#: What places blocks in C, see `place`.
place_in_c: Any = _c.place if IN_C else None

#: Classes of callers that are no functions, but know the one that they are called like as `__wrapped__`.
CALLERS: tuple[Any, ...] = (_c.Caller, _c.Cell) if IN_C else ()

#: Of a guard (see `guard.py`) the first step that does not find the same object as before, or -1; in Python, the guard
#: looks itself.
first_change: Callable[[bytes, tuple[Any, ...], tuple[Any, ...]], int] | None = _c.first_change if IN_C else None

#: The id of an expression: the number of its node, and above so many bits the view it is seen through.
NODE_BITS = 32

# What callers take: one to three operands; one, and an argument; one that is shown through a view; one, and an index; a
# list of one spec; a list of any; a table, and an index.
FIXED, ATTRIBUTE, VIEW, INDEX, LIST, PLACE, LOOKUP = range(7)


if TYPE_CHECKING or not IN_C:

    class Builder:
        """What of a graph is read and written by recording; see `graph.columns.Columns`."""

        __slots__ = ("careful", "constants", "dtype", "handle", "integers", "n", "operands", "serial", "types")

        careful: bool
        constants: dict[Any, tuple[int, Any]]
        dtype: np.dtype
        handle: Any
        integers: Any
        n: int
        operands: Any
        serial: int
        types: Any

        def __del__(self) -> None:
            try:
                self._end()
            except BaseException as error:  # of a signal's handler; Python would say so, and go on
                self._end()
                raise_soon(type(error))

        def _end(self) -> None:
            """Give back what it holds, before it goes."""

    class Handle(msgspec.Struct, gc=False, eq=False):
        """A node of a graph, perhaps seen through a view, and its spec.

        Without garbage collection it is built in a third of the time of a class with __slots__; it holds the graph, the
        graph holds no expressions, so there is no cycle to collect.
        """

        graph: Any
        id: int
        spec: Any
else:
    Builder, Handle = _c.Builder, _c.Handle


def new_columns() -> tuple[Any, Any, Any]:
    """Columns of types, operands and integers."""
    return (_c.Column(4), _c.Column(8), _c.Column(8)) if IN_C else ([], [], [])


def as_taken(column: Any, code: str) -> Any:
    """A column as an array that sees it, which nothing is appended to any more; `code`: see `packing`."""
    if isinstance(column, list):
        # Of bytes it could not be written to, and compiled code would be another.
        return np.frombuffer(bytearray(packing(code, len(column)).pack(*column)), np.dtype(code))
    return np.asarray(column)


def connect(parameter: type, top: ContextVar[Any], place: Callable[..., int]) -> None:
    """Say what parameters are, where the graph is found that is open, and what places blocks in Python."""
    if IN_C:
        _c.connect(parameter, top, place)
    _top.append(top)


_top: list[ContextVar[Any]] = []


def caller(kind: int, slow: Callable[..., Any], operands: int = 1, default: Any = None) -> Any:
    """A caller, which has `learn(specs, type, out, argument, view, step, bound)`.

    Args:
        kind: what it takes.
        slow: what is called with what it does not know.
        operands: of `FIXED`, how many.
        default: of the argument.
    """
    if IN_C:
        made = _c.Caller(kind, operands, slow, default)
        made.__wrapped__ = slow  # whose signature is that of the caller
        return made
    made = _fixed(slow, operands) if kind == FIXED else _MADE[kind](slow, default)
    made.slow = slow
    return made


def cell_caller(slow: Callable[..., Any], *compared: Any) -> Any:
    """The caller of a cell: in Python it is the slow function, which compares the same.

    Args:
        compared: where last calls are kept (None: by the owner), under which name, attributes that are looked at, what
            stands for one that is missing, how many arguments there are besides the owner, whether there is an owner,
            and which arguments are integers, as bits of an integer.
    """
    return _c.Cell(slow, *compared) if IN_C else slow


def become(call: Any, other: Any) -> None:
    """Have a cell's caller do what another does."""
    if isinstance(call, FunctionType):
        call.__code__ = other.__code__
    else:
        call.become(other)


def recorded(kind: int, operands: int = 1) -> Callable[[Callable[..., Any]], Any]:
    """Make a caller of the function below, which it is called like, and which is its slow function."""

    def make(slow: Callable[..., Any]) -> Any:
        return update_wrapper(caller(kind, slow, operands), slow)

    return make


def documented(call: Any, module: str, name: str, doc: str, argument: str = "") -> Any:
    """Give a caller its public name and docstring; a function around it would cost a third of the call.

    Args:
        argument: what the function's `argument` is called, for callers who name it and for `inspect.signature`.
    """
    for one in {call, call.slow}:
        if argument and isinstance(one, FunctionType):
            names = tuple(argument if known == "argument" else known for known in one.__code__.co_varnames)
            one.__code__ = one.__code__.replace(co_varnames=names)
            one.__annotations__[argument] = one.__annotations__.pop("argument", Any)
    slow = call.slow
    slow.__name__ = slow.__qualname__ = name
    slow.__doc__, slow.__module__ = doc, module
    return update_wrapper(call, slow)


def _learning(call: Any, entries: dict[Any, Any], key_of: Callable[..., Any], value_of: Callable[..., Any]) -> Any:
    """Have a function learn entries of a dictionary."""

    def learn(
        specs: tuple[Any, ...], type: int, out: Any, argument: Any = None, view: int = 0, step: int = 0, bound: int = 0
    ) -> None:
        key = key_of(specs, argument, view)
        entries[key] = value_of(type, out, step, bound)
        for spec in specs:
            if isinstance(spec, ParameterSpec):
                spec.enters(entries, key)

    call.learn = learn
    return call


def _fixed(slow: Callable[..., Any], n: int) -> Any:
    entries: dict[Any, tuple[int, Any]] = {}

    def call_one(x: Any) -> Any:
        try:
            type_id, spec = entries[x.spec]
        except (KeyError, AttributeError):
            pass
        else:
            graph = x.graph
            if graph is not None:
                node = graph.n
                graph.n = node + 1
                graph.types.append(type_id)
                graph.operands.append(x.id)
                handle = graph.handle
                return handle(graph, node, spec)
        return slow(x)

    def call_several(*xs: Any, **keywords: Any) -> Any:
        try:
            type_id, spec = entries[tuple([x.spec for x in xs])]
        except (KeyError, AttributeError):
            pass
        else:
            graphs = {x.graph for x in xs if x.graph is not None}
            if len(graphs) == 1:
                (graph,) = graphs
                node = graph.n
                graph.n = node + 1
                graph.types.append(type_id)
                graph.operands += [x.id for x in xs if x.graph is not None]
                handle = graph.handle
                return handle(graph, node, spec)
        return slow(*xs, **keywords)

    if n == 1:
        return _learning(call_one, entries, lambda specs, *_: specs[0], lambda type, out, *_: (type, out))
    if n == 2:

        def call_two(a: Any, b: Any) -> Any:
            try:
                type_id, spec = entries[a.spec, b.spec]
            except (KeyError, AttributeError):
                pass
            else:
                graph = a.graph
                if b.graph is graph and graph is not None:
                    operands = graph.operands
                    operands.append(a.id)
                    operands.append(b.id)
                elif b.graph is None and graph is not None:  # a parameter
                    graph.operands.append(a.id)
                elif graph is None and b.graph is not None:
                    graph = b.graph
                    graph.operands.append(b.id)
                else:
                    return slow(a, b)
                node = graph.n
                graph.n = node + 1
                graph.types.append(type_id)
                handle = graph.handle
                return handle(graph, node, spec)
            return slow(a, b)

        return _learning(call_two, entries, lambda specs, *_: specs, lambda type, out, *_: (type, out))
    return _learning(call_several, entries, lambda specs, *_: specs, lambda type, out, *_: (type, out))


def _attribute(slow: Callable[..., Any], default: Any) -> Any:
    entries: dict[Any, tuple[int, Any]] = {}

    def call(x: Any, argument: Any = default) -> Any:
        try:
            type_id, spec = entries[x.spec, argument, kinds(argument)]
        except (KeyError, AttributeError, TypeError):
            pass
        else:
            graph = x.graph
            if graph is not None:
                node = graph.n
                graph.n = node + 1
                graph.types.append(type_id)
                graph.operands.append(x.id)
                handle = graph.handle
                return handle(graph, node, spec)
        return slow(x, argument)

    return _learning(
        call,
        entries,
        lambda specs, argument, _: (specs[0], argument, kinds(argument)),
        lambda type, out, *_: (type, out),
    )


def _view(slow: Callable[..., Any], default: Any) -> Any:
    entries: dict[Any, tuple[int, Any]] = {}

    def call(x: Any, argument: Any = default) -> Any:
        try:
            step, spec = entries[x.spec, x.id >> NODE_BITS, argument, kinds(argument)]
        except (KeyError, AttributeError, TypeError):
            pass
        else:
            handle = x.graph.handle
            if spec.__class__ is tuple:  # several views
                return [handle(x.graph, x.id + step, spec) for step, spec in spec]
            return handle(x.graph, x.id + step, spec)
        return slow(x, argument)

    def key_of(specs: tuple[Any, ...], argument: Any, view: int) -> Any:
        return specs[0], view, argument, kinds(argument)

    return _learning(call, entries, key_of, lambda type, out, step, _: (step, out))


def _index(slow: Callable[..., Any], default: Any) -> Any:
    entries: dict[Any, tuple[int, Any, int]] = {}

    def call(x: Any, index: Any) -> Any:
        try:
            type_id, spec, bound = entries[x.spec]
            graph = x.graph
            if index.__class__ is not int or not 0 <= index < bound or graph is None:
                return slow(x, index)
        except (KeyError, AttributeError, TypeError):
            pass
        else:
            node = graph.n
            graph.n = node + 1
            graph.types.append(type_id)
            graph.operands.append(x.id)
            graph.integers.append(index)
            handle = graph.handle
            return handle(graph, node, spec)
        return slow(x, index)

    return _learning(call, entries, lambda specs, *_: specs[0], lambda type, out, step, bound: (type, out, bound))


def _list(slow: Callable[..., Any], default: Any) -> Any:
    entries: dict[Any, tuple[int, Any]] = {}

    def call(xs: Any) -> Any:
        if xs.__class__ not in (list, tuple):
            return slow(xs)
        try:
            graph, first = xs[0].graph, xs[0].spec
            type_id, spec = entries[first]
            for x in xs:
                if x.graph is not graph or x.spec is not first:
                    return slow(xs)
            ids = [x.id for x in xs]
        except (KeyError, AttributeError, TypeError, IndexError):
            pass
        else:
            if graph is not None:
                node = graph.n
                graph.n = node + 1
                graph.types.append(type_id)
                operands = graph.operands
                operands.append(len(ids))
                operands += ids
                handle = graph.handle
                return handle(graph, node, spec)
        return slow(xs)

    return _learning(call, entries, lambda specs, *_: specs[0], lambda type, out, *_: (type, out))


def _place(slow: Callable[..., Any], default: Any) -> Any:
    entries: dict[Any, tuple[int, Any]] = {}

    def call(xs: Any, axis: Any = default) -> Any:
        if xs.__class__ not in (list, tuple):
            return slow(xs, axis)
        try:
            type_id, spec = entries[(*[x.spec for x in xs], axis, axis.__class__)]
            graph = xs[0].graph
            for x in xs:
                if x.graph is not graph:
                    return slow(xs, axis)
        except (KeyError, AttributeError, TypeError):
            pass
        else:
            if graph is not None:
                node = graph.n
                graph.n = node + 1
                graph.types.append(type_id)
                graph.operands += [x.id for x in xs]
                handle = graph.handle
                return handle(graph, node, spec)
        return slow(xs, axis)

    return _learning(
        call, entries, lambda specs, axis, _: (*specs, axis, axis.__class__), lambda type, out, *_: (type, out)
    )


def _lookup(slow: Callable[..., Any], default: Any) -> Any:
    entries: dict[Any, tuple[int, Any, int]] = {}

    def call(table: Any, index: Any) -> Any:
        try:
            type_id, spec, bound = entries[table.spec]
        except (KeyError, AttributeError):
            pass
        else:
            graph = _top[0].get().value
            if index.__class__ is int and 0 <= index < bound and graph is not None:
                node = graph.n
                graph.n = node + 1
                graph.types.append(type_id)
                graph.integers.append(index)
                handle = graph.handle
                return handle(graph, node, spec)
        return slow(table, index)

    return _learning(call, entries, lambda specs, *_: specs[0], lambda type, out, step, bound: (type, out, bound))


_MADE = {ATTRIBUTE: _attribute, VIEW: _view, INDEX: _index, LIST: _list, PLACE: _place, LOOKUP: _lookup}
