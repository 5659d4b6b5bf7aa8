"""Recording: what is done for every node, in C where the extension was built, else in Python, with the same results.

A caller knows, for the specs of its operands, the type of the node that a call adds (an inline cache). What it does not
know or expect - a first call, an array, a parameter alone, an expression of another graph - goes to its slow function,
which records the node and has the caller learn it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from edbatch.base.exact import literal
from edbatch.base.extension import extension as _c
from edbatch.base.locking import raise_soon
from edbatch.base.records import packing
from edbatch.graph.spec import ParameterSpec

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

# What callers take: one to three operands, arguments, perhaps an integer; one operand that is shown through a view, and
# arguments; a list of one spec; a list of any, and an axis.
FIXED, VIEW, LIST, PLACE = range(4)


if TYPE_CHECKING or not IN_C:

    class Builder:
        """What of a graph is read and written by recording; see `graph.columns.Columns`."""

        __slots__ = (
            "careful", "constants", "dtype", "expression_class", "integers", "n", "operands", "serial", "types",
        )  # fmt: skip

        careful: bool
        constants: dict[Any, tuple[int, Any]]
        dtype: np.dtype
        expression_class: Any
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

    class _Kind(msgspec.StructMeta):
        def __new__(cls, name: str, bases: tuple[type, ...], held: dict[str, Any], **config: Any) -> Any:
            held.pop("__slots__", None)  # which structs have anyway, and refuse to be told
            return super().__new__(cls, name, bases, held, **config)

    class Handle(msgspec.Struct, metaclass=_Kind, gc=False, eq=False):
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


def caller(
    kind: int,
    slow: Callable[..., Any],
    names: tuple[str, ...],
    operands: int = 1,
    has_integer: bool = False,
    defaults: tuple[Any, ...] = (),
) -> Any:
    """A caller, which has `learn(specs, type, out, arguments, view, step, bound)`.

    Args:
        kind: what it takes.
        slow: what is called with what it does not know.
        names: of all that it takes: so many operands, arguments that are literals (`defaults`: of the last), and
            perhaps an integer of the node.
    """
    if IN_C:
        made = _c.Caller(kind, operands, has_integer, slow, names, defaults)
        made.__wrapped__ = slow  # whose signature is that of the caller
        return made
    entries: dict[Any, Any] = {}
    arguments = len(names) - operands - has_integer
    if kind in (LIST, PLACE):
        made = _list(slow, entries, kind, defaults)
    elif kind == VIEW:
        made = _view(slow, entries, arguments, defaults)
    else:
        made = _fixed(slow, entries, operands, arguments, has_integer, defaults)

    def learn(
        specs: tuple[Any, ...], type: int, out: Any, given: Any = (), view: int = 0, step: int = 0, bound: int = 0
    ) -> None:
        told = literal(given)
        if told is None:
            return
        key = (*specs, view, told)
        entries[key] = type, out, step, bound
        for spec in specs:
            if isinstance(spec, ParameterSpec):
                spec.enters(entries, key)

    made.slow, made.learn = slow, learn
    return made


def cell_caller(slow: Callable[..., Any], *compared: Any) -> Any:
    """The caller of a cell, which has `configure(slow, *compared)`; in Python it is the slow function.

    Args:
        compared: where last calls are kept (None: by the owner), their names by the number of arguments, attributes of
            the owner that are looked at, what stands for one that is missing, and whether there is an owner.
    """
    return _c.Cell(slow, *compared) if IN_C else slow


_NONE = literal(())  # of no arguments


def _told(given: tuple[Any, ...], arguments: int, defaults: tuple[Any, ...]) -> Any:
    """The arguments as a part of a key, for which `entries` has nothing if they are too many or too few."""
    if not arguments and not given:
        return _NONE
    missing = arguments - len(given)
    return literal((*given, *defaults[len(defaults) - missing :])) if 0 <= missing <= len(defaults) else None


def _appended(graph: Any, type: int, out: Any, operands: list[int], integers: tuple[int, ...]) -> Any:
    node = graph.n
    graph.n = node + 1
    graph.types.append(type)
    graph.operands += operands
    graph.integers += integers
    expression = graph.expression_class
    return expression(graph, node, out)


def _fixed(
    slow: Callable[..., Any],
    entries: dict[Any, Any],
    operands: int,
    arguments: int,
    has_integer: bool,
    defaults: tuple[Any, ...],
) -> Any:
    def call(*given: Any, **keywords: Any) -> Any:
        xs, rest, integers = given[:operands], given[operands:], ()
        if has_integer:
            rest, integers = rest[:arguments], rest[arguments:]
        try:
            known = entries[(*[x.spec for x in xs], 0, _told(rest, arguments, defaults))]
        except (KeyError, AttributeError, TypeError):
            known = None  # whose error would be the context of those of the slow function
        if known is None:
            return slow(*given, **keywords)
        type, out, _, bound = known
        ids, graph = [], None
        for x in xs:
            if x.graph is not None:
                if graph is not None and x.graph is not graph:
                    return slow(*given, **keywords)
                graph = x.graph
                ids.append(x.id)
        if has_integer:
            index: Any = integers[0] if len(integers) == 1 else None
            if index.__class__ is not int or not 0 <= index < bound:
                return slow(*given, **keywords)
            graph = graph or _top[0].get().value
        if graph is None or keywords:
            return slow(*given, **keywords)
        return _appended(graph, type, out, ids, integers)

    return call


def _view(slow: Callable[..., Any], entries: dict[Any, Any], arguments: int, defaults: tuple[Any, ...]) -> Any:
    def call(*given: Any, **keywords: Any) -> Any:
        try:
            x = given[0]
            known = entries[x.spec, x.id >> NODE_BITS, _told(given[1:], arguments, defaults)]
        except (KeyError, AttributeError, IndexError, TypeError):
            known = None
        if known is None or keywords:
            return slow(*given, **keywords)
        _, out, step, _ = known
        expression = x.graph.expression_class
        if out.__class__ is tuple:  # several views
            return [expression(x.graph, x.id + step, spec) for step, spec in out]
        return expression(x.graph, x.id + step, out)

    return call


def _list(slow: Callable[..., Any], entries: dict[Any, Any], kind: int, defaults: tuple[Any, ...]) -> Any:
    def call(*given: Any, **keywords: Any) -> Any:
        xs: Any = given[0] if given and not keywords else None
        if xs.__class__ not in (list, tuple):
            return slow(*given, **keywords)
        try:
            graph = xs[0].graph
            specs = [x.spec for x in xs if x.graph is graph]
            if kind == LIST:
                known = entries[specs[0], 0, _NONE] if specs.count(specs[0]) == len(xs) else None
            else:
                known = entries[(*specs, 0, _told(given[1:], 1, defaults))] if len(specs) == len(xs) else None
        except (KeyError, AttributeError, IndexError, TypeError):
            graph = known = None
        if graph is None or known is None:
            return slow(*given)
        ids = [x.id for x in xs]
        return _appended(graph, known[0], known[1], [len(xs), *ids] if kind == LIST else ids, ())

    return call
