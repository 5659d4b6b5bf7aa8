"""Cells: static subgraphs, marked by a decorator, that add one node to the graph a call (section 3)."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import update_wrapper
from typing import Any, TypeVar
from weakref import ref

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.exact import exact
from edbatch.exclusive import lock
from edbatch.graph.body import Body, body_of, row_of
from edbatch.graph.cell_call import fast_caller
from edbatch.graph.cell_tables import Described
from edbatch.graph.columns import Columns
from edbatch.graph.compiled import Compiled
from edbatch.graph.expression import Expression
from edbatch.graph.node_type import NodeType, intern
from edbatch.graph.op import Op
from edbatch.graph.parameters import Parameter
from edbatch.graph.passes.split_stages import may_split
from edbatch.graph.record import checked_index, graph_of, to_node, to_operand
from edbatch.graph.spec import Spec
from edbatch.graph.structure import Structure, flatten
from edbatch.graph.trace import Payload, Trace, traced
from edbatch.graph.views import NODE_BITS

F = TypeVar("F", bound=Callable[..., Any])


NO_BODY = Body((), (), (), 0)


@dataclass(frozen=True, eq=False)
class CellOp(Op):
    """The op of one traced cell; the runtime compiles its kernel from the body.

    Args:
        body: what it computes.
        compiled: what is known of it.
        columns: per output of the body, where it begins in a row of the result.
        codes: per output, the view that shows it in a row.
        names: of its operands, then of its integers.
        has_early, has_late: whether something in it may not wait for a recurrence, or not be needed by it.
        looks_up: whether it has a large product of what is looked up alone, which is the same for equal integers.
        splits: how it has been split so far (see `graph.split`).
        is_early: whether it is a part that was split off, which no user holds.
    """

    body: Body = NO_BODY
    columns: tuple[int, ...] = ()
    compiled: Compiled = field(default_factory=lambda: Compiled(NO_BODY))
    codes: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    has_early: bool = False
    has_late: bool = False
    looks_up: bool = False
    splits: dict[Any, Any] = field(default_factory=dict)
    is_early: bool = False


@dataclass(frozen=True)
class Entry:
    """What a call records, for one tuple of argument specs.

    Args:
        specs: per argument its spec; for an integer, the size that it indexes.
        type: type of the node.
        draws: how many integers a call draws, for what is random in it; they follow those it is given.
        outs: per returned expression the step from the node's id to the expression's, and its spec.
        structure: how the expressions are returned.
    """

    specs: tuple[Any, ...]
    type: NodeType
    draws: int
    outs: tuple[tuple[int, Spec], ...]
    structure: Structure

    @property
    def form(self) -> int:
        """1: a single expression, 2: a pair of them, 0: anything else."""
        if self.structure.kind is None:
            return 1
        return 2 if self.structure == flatten((0, 0))[1] else 0

    @property
    def flat_outs(self) -> tuple[Any, ...]:
        """`outs` as the fast way reads them: of a pair in one tuple."""
        return (*self.outs[0], *self.outs[1]) if self.form == 2 else self.outs


def cell(function: F) -> F:
    """Mark a function of expressions as a static subgraph: each call adds ONE node to the graph.

    In a recurrence (a step that takes a state from the step before), products that do not need the state run before it
    for all steps at once, and what the next step does not need runs after it: such a call is computed as up to
    three nodes.

    The function is traced once per tuple of argument shapes; from then on a call only records its arguments. It gives
    the same numbers as without the decorator, in less time: the graph is smaller, and the body runs as one batch
    whose intermediates stay in the processor's cache.

    Args:
        function: a function or method. Its positional arguments are expressions, or integers that the body indexes
            with (a look-up index, a label; annotate them `int`: such calls are recorded faster); keyword-only
            arguments are fixed when it is traced. It may use parameters and other cells, and return an expression or
            any nesting of tuples, lists and dictionaries of them.

    Raises:
        EdBatchError: when called: the function reads a value, depends on an integer argument, keeps state
            (two traces differ), or returns something else than expressions.

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
    made = Cell(function)
    call: Any = update_wrapper(fast_caller(made), function)
    call.layout, call.explain, call.compiled = made.layout, made.explain, made.compiled
    return call


def is_expression(x: Any) -> bool:
    """Whether an argument is a node of the graph."""
    return isinstance(x, Expression)


class Cell(Described):
    """A decorated function and what has been traced of it.

    Attributes:
        name: of the function, with its class.
        is_method: whether its first argument is `self`, the owner of its traces.
        positional: its positional arguments, without `self`; `is_plain` if there are some, and all must be given.
        has_static: whether it has keyword-only arguments.
        traces: all traces of all owners.
        attribute: under which an owner keeps the entry of its last call, and (with `_all`) all entries.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.traces = []
        self.name = function.__qualname__.replace("<locals>.", "")
        self.attribute = "_cell_" + re.sub(r"\W", "_", self.name)
        parameters = list(inspect.signature(function).parameters.values())
        self.is_method = bool(parameters) and parameters[0].name == "self"
        self.positional = [p for p in parameters[self.is_method :] if p.kind is not p.KEYWORD_ONLY]
        self.has_static = any(p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD) for p in parameters)
        self.is_plain = bool(self.positional) and all(
            p.kind is p.POSITIONAL_OR_KEYWORD and p.default is p.empty for p in self.positional
        )

    def call(self, owner: Any, args: tuple[Any, ...], static: dict[str, Any]) -> Any:
        """The careful way: any arguments, first calls, calls inside a trace."""
        graph = graph_of(f"cell {self.name}", args)
        if graph.inlines:
            return self.function(*((owner, *args) if self.is_method else args), **static)
        operands = [arg if is_integer(arg) else to_operand(f"cell {self.name}", graph, arg) for arg in args]
        entry = self.entry(owner, operands, static, graph)
        ids = [x.id for x in operands if isinstance(x, Expression)]
        integers = [
            checked_index(x, limit, f"cell {self.name}, argument {number}")
            for number, (x, limit) in enumerate(zip(operands, entry.specs, strict=True))
            if is_integer(x)
        ]
        node = graph.add(entry.type, [*ids, *integers, *graph.draw(entry.draws)]).id
        return entry.structure.build([Expression(graph, node + step, spec) for step, spec in entry.outs])

    def entry(self, owner: Any, operands: list[Any], static: dict[str, Any], graph: Columns) -> Entry:
        """What a call with such arguments records; traced at the first."""
        try:
            kept = vars(owner if self.is_method else self)
        except TypeError:
            raise EdBatchError(
                f"cell {self.name}: expected an object with a __dict__, where its traces are kept, got "
                f"{type(owner).__name__}"
            ) from None
        entries = kept.get(self.attribute + "_all")
        if entries is None:
            entries = kept.setdefault(self.attribute + "_all", Traces())
            self.traces.append(ref(entries, self.traces.remove))
        try:
            shapes = (None if is_integer(x) else x.spec for x in operands)
            key = (*shapes, graph.dtype, graph.variant, *(exact(item) for item in sorted(static.items())))
            found = entries.get(key)
        except TypeError as error:
            raise EdBatchError(f"cell {self.name}: keyword arguments must be hashable ({error})") from None
        if found is None:
            with lock:  # tracing may stack parameters
                found = entries.get(key) or self.trace(owner, operands, static, graph)
                entries[key] = found
        if not static:
            kept[self.attribute + graph.variant] = LastCall(
                *found.specs, graph.dtype, found.type.id, found.draws, found.form, found.flat_outs, found.structure
            )
        return found

    def trace(self, owner: Any, operands: list[Any], static: dict[str, Any], graph: Columns) -> Entry:
        """Run the function on placeholders, twice, and make an op of what it records."""
        body, structure, payloads = self.run(owner, operands, static, graph)
        again = self.run(owner, operands, static, graph)
        if not same(body, again[0]) or structure != again[1]:
            raise EdBatchError(
                f"cell {self.name} keeps state: traced twice, it computes two different things; a cell must be a "
                "function of its arguments and of parameters"
            )
        draws = len(payloads) - sum(map(is_integer, operands))
        compiled = graph.compile(body, self.argument_names(operands))
        body = compiled.body
        columns, row, outs = row_of(body, graph.dtype)
        name = self.name + "".join(f" {key}={value!r}" for key, value in sorted(static.items()))
        names = (*self.argument_names(operands), *self.argument_names(operands, is_integer), *["mask"] * draws)
        known = (False,) * 3 if compiled.splittable is None else may_split(compiled.splittable)
        has_early, has_late, looks_up = known
        op = cell_op(
            name, body, columns, compiled=compiled, codes=tuple(step >> NODE_BITS for step, _ in outs),
            names=names, has_early=has_early, has_late=has_late, looks_up=looks_up,
        )  # fmt: skip
        limits = iter(payloads)
        specs = tuple(next(limits).limit if is_integer(x) else x.spec for x in operands)
        return Entry(specs, intern(op, (), body.arguments, row), draws, outs, structure)

    def argument_names(self, operands: list[Any], chosen: Callable[[Any], bool] = is_expression) -> list[str]:
        """What the function calls the arguments that are expressions, or other chosen ones."""
        names = []
        for at, x in enumerate(operands):
            if chosen(x):
                p = self.positional[min(at, len(self.positional) - 1)]
                names.append(f"{p.name}[{at - len(self.positional) + 1}]" if p.kind is p.VAR_POSITIONAL else p.name)
        return names

    def run(
        self, owner: Any, operands: list[Any], static: dict[str, Any], graph: Columns
    ) -> tuple[Body, Structure, list[Payload]]:
        """One trace: what the function computes, how it returns it, and the integers it takes and draws."""
        trace = Trace(self.name, graph.dtype, graph.options)
        given: list[Any] = [owner] if self.is_method else []
        for x in operands:
            if is_integer(x):
                given.append(trace.payload())
            else:
                given.append(x if isinstance(x, Parameter) else trace.argument(x.spec))
        try:
            leaves, structure = flatten(traced(trace, lambda: self.function(*given, **static)))
            for x in leaves:
                if isinstance(x, Expression) and x.graph is not trace:
                    raise EdBatchError("it returns an expression that it did not compute")
            if not leaves:
                raise EdBatchError("it returns no expression")
            nodes = [to_node(trace, to_operand("result", trace, x)) for x in leaves]
        except EdBatchError as error:
            prefix = f"cell {self.name}"
            raise EdBatchError(str(error) if str(error).startswith(prefix) else f"{prefix}: {error}") from None
        arguments = tuple(x.spec for x in operands if isinstance(x, Expression))
        return body_of(trace, arguments, [x.id for x in nodes], len(trace.payloads)), structure, trace.payloads


class Traces(dict[Any, Entry]):
    """The entries of a cell that its owner keeps. A copy of the owner has parameters of its own, and starts anew."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Traces, ()


class LastCall:
    """What the fast way compares a call with; see `Traces` of copies.

    Attributes:
        call: a plain tuple: unpacking one of a class of our own takes twice as long.
    """

    __slots__ = ("call",)

    def __init__(self, *call: Any) -> None:
        self.call = call

    def __reduce__(self) -> tuple[Any, ...]:
        return LastCall, ()


def is_integer(x: Any) -> bool:
    """Whether an argument is known at run time only."""
    return isinstance(x, int | np.integer) and not isinstance(x, bool)


def same(a: Body, b: Body) -> bool:
    """Whether two traces are of one computation."""
    return a.outputs == b.outputs and len(a.nodes) == len(b.nodes) and all(
        (x.type, x.operands, x.payload) == (y.type, y.operands, y.payload)
        and (x.value is None) == (y.value is None)
        and (x.value is None or (x.value.shape, x.value.tobytes()) == (y.value.shape, y.value.tobytes()))
        for x, y in zip(a.nodes, b.nodes, strict=True)
    )  # fmt: skip


def cell_op(name: str, body: Body, columns: tuple[int, ...], **known: Any) -> CellOp:
    """The op of a body; `known`: more of `CellOp`."""
    return CellOp(name, _inferred, _inferred, payload=body.payloads, body=body, columns=columns, **known)


def _inferred(*_: Any) -> Any:
    raise AssertionError("a cell's result comes from its trace and its kernel from the runtime")
