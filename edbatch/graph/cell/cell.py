"""Cells: static subgraphs, marked by a decorator, that add one node to the graph a call (section 3)."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial, update_wrapper
from operator import is_
from types import MethodType
from typing import Any, TypeVar
from weakref import ref

import numpy as np

from edbatch.base.locking import lock
from edbatch.base.signature import signature_of
from edbatch.errors import EdBatchError, warn
from edbatch.graph.array import array
from edbatch.graph.array_graph import ArrayGraph, entry, numbered
from edbatch.graph.attributes import CELL_PREFIX
from edbatch.graph.cell.entry import CellTrace, Traces
from edbatch.graph.cell.inline_cache import MOST, InlineCache, caller_in_python, returned
from edbatch.graph.cell.keywords import keyword_key, text_of
from edbatch.graph.cell.made_anew import note_cell
from edbatch.graph.cell.tables import compiled_traces, explain, layout
from edbatch.graph.cell.trace import Payload, traced
from edbatch.graph.cell.tracing import Arguments, expect_same, is_expression, is_integer, trace_cell
from edbatch.graph.cell.tree import flatten
from edbatch.graph.columns import Columns
from edbatch.graph.expression import Expression
from edbatch.graph.expression_list import ExpressionList
from edbatch.graph.function_state import name_of
from edbatch.graph.guard import Guard, by_owner
from edbatch.graph.hints import KEYWORD_ONLY
from edbatch.graph.integers import Integers, counts_from_the_end, is_integers
from edbatch.graph.model.parameters import Parameter
from edbatch.graph.number_warnings import MANY
from edbatch.graph.record import checked_index, checked_label, fits, graph_of, to_operand
from edbatch.graph.recorder import cell_caller
from edbatch.graph.step import MISSING

F = TypeVar("F", bound=Callable[..., Any])

#: Traces of one cell for one tuple of argument shapes, from which on there is a warning where something else than a
#: number is another each time (a stack may have many layers that are traced one by one).
VERY_MANY = 100

#: How many attributes every call looks at, at most.
WATCHED = 16

_numbers = itertools.count()


def cell(function: F) -> F:
    """Mark a function of expressions as a static subgraph: each call adds ONE node to the graph.

    In a recurrence (a step that takes a state from the step before), products that do not need the state run before it
    for all steps at once, and what the next step does not need runs after it: such a call is computed as up to
    three nodes.

    The function is traced once per tuple of argument shapes, which takes as long as hundreds of calls (so make a cell
    once, as a function of a module or a method, not anew in each mini-batch); from then on a call only records its
    arguments. It gives the same numbers as without the decorator, in less time: the graph is smaller, and the body
    runs as one batch whose intermediates stay in the processor's cache.

    It depends on its arguments, the state of its owner (`self`), and the globals and closure of its own function: on
    what these hold under the names in its code, and in the code of functions and methods that it names. That is
    compared, exactly, at the first call in each graph for each object: if it has changed, the function is traced again,
    and where it is back at an earlier value, the earlier trace is found. Attributes of the object may also change
    between two calls in one graph. All else is compared once more when the graph runs, and at the end of its `with`
    block: a change since the first call is an error that names it. A value that is changed, used, and
    changed back within one graph is not seen, and calls in between compute with the first one. A number that is another
    in every mini-batch is better an argument: that is a value, and needs no new trace.

    Not compared is what objects written in C hold, what is beyond 256 numbers and objects, arrays of more than 64 kB
    (which one it is, is), the environment and files; functions of EdBatch, NumPy, Python's library and installed
    packages are taken to stay as they are. `eb.options(check=True)` finds what depends on those.

    Args:
        function: a function, method, class method, static method, or any other object that can be called. Its
            arguments are expressions (parameters, numbers and arrays become such), or integers that the body
            indexes with (a look-up index, a label; annotate them `int`: such calls are recorded faster). What
            decides what it computes (a flag, a name, a size) must be a keyword-only parameter, `def c(x, *, s="a")`,
            and is fixed when it is traced, once per value. The function may use parameters and other cells, and
            return an expression or any nesting of tuples, lists and dictionaries of them. A call with an
            `ExpressionArray`, or an array of integers for what is annotated `int`, is one of each entry; the function
            itself is of one.

    Raises:
        EdBatchError: when called: the function reads a value, depends on an integer argument, keeps state
            (two traces differ), or returns something else than expressions. When the graph runs, or its `with` block
            ends: what the function depends on has changed between two calls.

    Example:
        >>> import edbatch as eb
        >>> model = eb.ParameterCollection(seed=0)
        >>> W = model.add_parameters((2, 2), name="W", init=0.5)
        >>> @eb.cell
        ... def step(h, x):
        ...     h = eb.tanh(W @ h + x)
        ...     return h, h * 2
        >>> with eb.Graph() as graph:
        ...     h, twice = step(eb.zeros(2), eb.ones(2))
        ...     h, twice = step(h, eb.ones(2))
        >>> twice.value().round(3)
        array([1.885, 1.885], dtype=float32)
        >>> graph.report().nodes
        2

        What became of it: where its variables lie, and how each batch of its body reaches its operands.

        >>> step.layout()
        step([2], [2])
        variable    is            space      place            size    bytes
        ----------  ------------  ---------  -------------  ------  -------
        h           argument      row        columns 0:2         2        8
        x           argument      row        columns 2:4         2        8
        ...
        W           parameter     its own                        4       16
        >>> step.explain()
        step([2], [2]): 4 batches, no fewer are possible
        batch     operand    variables    reached       bytes  stopped by
        --------  ---------  -----------  ----------  -------  ------------
        matmul    result     matmul       contiguous        0
        matmul    0          W            contiguous        0
        matmul    1          h            contiguous        0
        ...
    """
    if isinstance(function, classmethod | staticmethod):
        return type(function)(cell(function.__func__))
    if not callable(function) or isinstance(function, type):
        raise EdBatchError(f"cell: expected a function, got {function!r}")
    made = Cell(function)
    call: Any = update_wrapper(made.fast, function)
    call.layout, call.explain, call.compiled = (MethodType(show, made) for show in (layout, explain, compiled_traces))
    return call


class Cell:
    """A decorated function and what has been traced of it.

    Attributes:
        fast: what the user calls.
        is_method: whether its first argument is the owner of its traces; its name says so, or the first call.
        positional: the parameters by place, without the owner.
        watched: attributes of the owner that every call looks at.
        attribute: begins the names under which an owner keeps traces and last calls.
        kept_apart: by `id`, the same of owners that cannot hold attributes, as classes.
    """

    fast: Any

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.traces: list[ref[Traces]] = []
        self.name = name_of(function.func if isinstance(function, partial) else function)
        # Two cells may have one name: in a class and in another that inherits from it, say.
        self.attribute = re.sub(r"\W", "_", f"{CELL_PREFIX}{self.name}_{next(_numbers)}")
        self.signature = signature_of(function)
        self.parameters = list(self.signature.parameters.values())
        self.is_method = bool(self.parameters) and self.parameters[0].name in ("self", "cls")
        of_place = [p for p in self.parameters if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD)]
        self.positional = of_place[self.is_method :]
        self._integers = frozenset(at for at, p in enumerate(of_place) if p.annotation in (int, "int"))
        self.watched: tuple[str, ...] = ()
        self.kept_apart: dict[int, dict[str, Any]] = {}
        self.last_names = tuple([f"{self.attribute}_{count}" for count in range(MOST + 1)])
        self._call = caller_in_python(self)
        self.fast = cell_caller(*self._compared())

    def _compared(self) -> tuple[Any, ...]:
        """What its caller calls, and what calls are compared with."""
        kept = None if self.is_method else vars(self)
        return self._call, kept, self.last_names, self.watched, MISSING, self.is_method

    def _configure(self, **changed: Any) -> None:
        """Change what calls are compared with; last calls of another form are then refused."""
        vars(self).update(changed)
        if self.fast is not self._call:
            self.fast.configure(*self._compared())

    def call(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """The slow path: any arguments, first calls, calls inside a trace."""
        own = graph = graph_of(f"cell {self.name}", [*args, *keywords.values()])
        if keywords:
            args, keywords = self._by_place(args, keywords)
        taken = list(args)
        for at in self._integers:
            if at < len(args):
                graph, taken[at] = numbered(graph, args[at])
        if graph.base is not None:
            self._check_arrays(args, graph)
        if graph.inlines:
            return self._inlined(tuple(taken), keywords, graph)
        owner, args = self._owner_of(tuple(taken))
        operands = tuple([self.operand(x, at, graph) for at, x in enumerate(args)])
        if not all(map(is_, operands, args)):
            # By now all are as a cached call takes them; where none tells the graph, it has to be the current one.
            again = partial(self.fast, *owner, *operands, **keywords)
            return again() if graph is own or any(map(is_expression, operands)) else traced(graph, again)
        given = self.arguments(owner, operands, keywords, graph)
        found = self.trace_for(given, graph)
        for shape in found.enlarging:
            if graph.may_mean_each(shape[0]):
                graph.refuse_rows(f"cell {self.name}", shape)
        for at in found.labels:
            checked_label(given.operands[at], found.specs[at], f"cell {self.name}, argument {given.labels[at]}")
        if any(counts_from_the_end(given.operands[at]) for at in found.mixed):  # several: no one index stands for it
            return self._inlined((*owner, *args), keywords, graph)
        ids = [x.id for x in given.operands if isinstance(x, Expression)]
        integers = [
            checked_index(x, limit, f"cell {self.name}, argument {label}")
            for label, x, limit in zip(given.labels, given.operands, found.specs, strict=True)
            if is_integer(x)
        ]
        return found.recorded(graph, graph.add(found.type, ids, integers).id)

    def _check_arrays(self, args: tuple[Any, ...], graph: Columns) -> None:
        """Refuse an array that may be meant for the entries of arrays of expressions, a row for each."""
        shapes = [x.spec.shape for x in args if isinstance(x, Expression)]
        for at, x in enumerate(args):
            if at in self._integers or not isinstance(x, np.ndarray) or not x.ndim or not graph.may_mean_each(len(x)):
                continue
            place = f"cell {self.name}, argument {self.label(at - self.is_method)}"
            if is_integers(x):
                raise EdBatchError(
                    f"{place}: an array of {len(x)} integers for as many entries: expected one that is annotated int, "
                    "which is given one for each entry, or an array of floats, which is the same for all"
                )
            if not any(fits(x.shape, shape) for shape in shapes):
                graph.refuse_rows(place, x.shape)

    def _by_place(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments with those by place that were given by name."""
        if not any(p.name in keywords for p in self.parameters if p.kind is p.POSITIONAL_OR_KEYWORD):
            return args, keywords
        bound = self.signature.bind(*args, **keywords)
        if any(p.name in bound.kwargs for p in self.positional):  # behind one that is left out
            bound.apply_defaults()
        return bound.args, bound.kwargs

    def _inlined(self, args: tuple[Any, ...], keywords: dict[str, Any], graph: Columns) -> Any:
        """What the body records where it is called; of arrays, entry by entry: what it says is of one."""
        if not isinstance(graph, ArrayGraph):
            return returned(graph, traced(graph, lambda: self.function(*args, **keywords)))
        found = []
        for at in range(graph.count):
            one = [entry(x, at) for x in args]
            named = {key: entry(x, at) for key, x in keywords.items()}
            found.append(flatten(self._inlined(tuple(one), named, graph.base)))
        columns = zip(*(leaves for leaves, _ in found), strict=True)
        return found[0][1].build([array(column) for column in columns])

    def _owner_of(self, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The owner, if there is one, and the other arguments; the first call says which there are."""
        is_method = bool(args) and not isinstance(args[0], _OPERANDS) and (self.is_method or _may_own(args[0]))
        if is_method != self.is_method and args:
            of_place = [p for p in self.parameters if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD)]
            self._configure(is_method=is_method, positional=of_place[is_method:])
        return args[: self.is_method], args[self.is_method :]

    def arguments(
        self, owner: tuple[Any, ...], operands: tuple[Any, ...], keywords: dict[str, Any], graph: Columns
    ) -> Arguments:
        """The arguments of a call, those given by keyword told apart."""
        labels = [self.label(at) for at in range(len(operands))]
        named = {
            key: to_operand(f"cell {self.name}, argument {key}", graph, x)
            for key, x in sorted(keywords.items())
            if is_expression(x) or isinstance(x, Parameter)
        }
        static = {key: x for key, x in keywords.items() if key not in named}
        return Arguments(owner, (*operands, *named.values()), (*labels, *named), len(named), static)

    def label(self, at: int) -> str:
        """What the function calls a positional argument."""
        positional = self.positional
        if at < len(positional) and (p := positional[at]).kind is not p.VAR_POSITIONAL:
            return p.name
        return f"{positional[-1].name}[{at - len(positional) + 1}]" if positional else str(at)

    def operand(self, x: Any, at: int, graph: Columns) -> Any:
        """A positional argument, converted: an expression, a parameter or an integer."""
        is_index = at + self.is_method in self._integers
        if is_integer(x) or (x.__class__ is Expression and x.graph is graph and not is_index):
            return x
        label = self.label(at)
        place = f"cell {self.name}, argument {label}"
        if is_index:
            raise EdBatchError(f"{place}: expected an integer, got {type(x).__name__} {x!r}")
        if not isinstance(x, _OPERANDS):
            parts = ""
            if isinstance(x, tuple | list | dict):
                listed = f"*{label}.values()" if isinstance(x, dict) else f"*{label}"
                parts = f"pass its parts as arguments: {self.name.rpartition('.')[2]}({listed}, ...); "
            raise EdBatchError(
                f"{place}: expected an expression, a parameter, a number or an array, got {type(x).__name__}; {parts}"
                + KEYWORD_ONLY
            )
        return to_operand(place, graph, x)

    def kept(self, owner: tuple[Any, ...]) -> dict[str, Any]:
        """The dictionary in which an owner's traces are kept: its own, if it has one."""
        if not owner:
            return vars(self)
        if hasattr(owner[0], "__dict__") and not isinstance(owner[0], type):
            return vars(owner[0])
        made: dict[str, Any] = by_owner(self.kept_apart, owner[0], lambda held: {"owner": held}, f"cell {self.name}")
        return made

    def trace_for(self, given: Arguments, graph: Columns) -> CellTrace:
        """What a call with such arguments records; traced at the first."""
        kept = self.kept(given.owner)
        traces: Traces = kept.get(self.attribute + "_all")  # type: ignore[assignment]
        if traces is None:
            traces = kept.setdefault(self.attribute + "_all", Traces())
            self.traces.append(ref(traces, self.traces.remove))
        shapes = tuple(None if is_integer(x) else x.spec for x in given.operands)
        named = given.labels[len(shapes) - given.keywords :]
        try:
            static = tuple((name, keyword_key(given.static[name])) for name in sorted(given.static))
        except TypeError as error:
            raise EdBatchError(
                f"cell {self.name}: what is given by keyword must be hashable ({error}), or be an expression"
            ) from None
        key = (shapes, named, graph.dtype, graph.options.variant, static)
        owner = given.owner[0] if given.owner else self
        roots = owner, given.objects
        found = traces.right(key, graph, roots) or self._traced(traces, key, given, graph, roots)
        graph.note(found.guard, *roots)
        if graph.options.check:
            expect_same(self.name, self.function, given, graph, found)
        elif not (named or found.enlarging) and (not static or len(traces) < VERY_MANY):
            with suppress(KeyError, IndexError):  # each text that is given has a last call
                name = self.last_names[len(given.operands)] + text_of(given.static)
                kept[name] = InlineCache.of(found, graph, self._watched(found.guard, owner))
                graph.note(found.guard, *roots, found.guard.looks)
        return found

    def _watched(self, guard: Guard, owner: Any) -> tuple[Any, ...]:
        """Have every call look at what it can; the attributes' values."""
        own = None if isinstance(owner, type) or not self.is_method else getattr(owner, "__dict__", None)
        if own is None:
            return ()
        watched = (*self.watched, *(name for name in guard.watched if name not in self.watched))[:WATCHED]
        if watched != self.watched:
            self._configure(watched=watched)
        guard.looks = frozenset(watched)
        return tuple(own.get(name, MISSING) for name in watched)

    def _traced(self, traces: Traces, key: Any, given: Arguments, graph: Columns, roots: tuple[Any, Any]) -> CellTrace:
        """A new trace, the first of its key from now on."""
        with lock:  # tracing may stack parameters
            right = traces.right(key, graph, roots)  # by another thread
            if right is not None:
                return right
            known = tuple(one for one in traces.get(key, ()) if not one.guard.is_over)[: VERY_MANY - 1]
            made = trace_cell(self.name, self.function, given, graph, known)
            traces.forget_gone()
            traces[key] = (made, *known)
            note_cell(self, self.name, self.function)
        if not traces.warned:
            self._warn_of_many(traces, key, known, roots)
        return made

    def _warn_of_many(self, traces: Traces, key: Any, known: tuple[CellTrace, ...], roots: tuple[Any, Any]) -> None:
        """Say so if a cell is traced again and again, and what for."""
        *alike, static = key
        values = [other[-1] for other in traces if other[:-1] == tuple(alike) and other[-1] != static]
        numbers = _numbers_in(static) if values else []
        if numbers:
            values = [other for other in values if _numbers_in(other) == numbers]
        change = known[0].guard.change(*roots) if known else None
        if change is not None:
            what, is_number, count = f"{change.path} has become {change}", change.is_number, len(known) + 1
        elif values:
            what, is_number = f"{', '.join(numbers) or 'a keyword'} is another", bool(numbers)
            count = len(values) + traces.gone + 1
        else:
            return
        if count < (MANY if is_number else VERY_MANY):
            return
        traces.warned = True
        warn(
            f"cell {self.name} has been traced {count} times: {what}. Each time costs more than a hundred calls; "
            "pass what changes as an expression, as any number is that is given by position"
        )


def _numbers_in(static: Any) -> list[str]:
    return [name for name, (kind, *_) in static if kind is float]


_OPERANDS = (Expression, Parameter, int, float, np.number, np.ndarray, Integers, Payload)


def _may_own(x: Any) -> bool:
    """Whether an argument is an object of a class that has methods, so that it may be what others call `self`."""
    return isinstance(x, type) or (type(x).__module__ != "builtins" and not isinstance(x, ExpressionList))
