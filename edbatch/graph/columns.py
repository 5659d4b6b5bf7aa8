"""The recorded graph: append-only columns, and the graph that is current."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn
from weakref import ref

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.graph.block import Instances, one_node, place
from edbatch.graph.draws import first_draw, next_graph
from edbatch.graph.expression import Expression
from edbatch.graph.guard import Guard, Noted, expect_unchanged
from edbatch.graph.lines import LinedTypes, users_line
from edbatch.graph.node_type import TYPES, NodeType
from edbatch.graph.opened import graphs
from edbatch.graph.options import Options, current_options
from edbatch.graph.recorder import Builder, as_taken, new_columns
from edbatch.graph.spec import Shape, Spec, float_dtype
from edbatch.graph.views import NODE_MASK

DAMAGED = "the graph is damaged: recording a node was interrupted, or another thread recorded one at the same time"

if TYPE_CHECKING:
    from edbatch.graph.array_graph import ArrayGraph
    from edbatch.graph.block import Block
    from edbatch.graph.cell.body import Body
    from edbatch.graph.cell.tables import Compiled

#: Of graphs, and of traces.
_top = graphs.top.get

_serials = count()


class Recorded(NamedTuple):
    """Nodes as arrays: type ids (int32), ids of operands and integers (int64), and lines, if they are noted."""

    types: np.ndarray
    operands: np.ndarray
    integers: np.ndarray
    lines: list[str]


def nodes_of(
    types: list[int], operands: list[Any], integers: list[Any]
) -> Iterator[tuple[NodeType, list[Any], list[Any]]]:
    """Yield the type of each node, the ids of its operands, and its integers; an error if there are too few or many."""
    at = integer = 0
    for id in types:
        type = TYPES[id]
        n = type.n_operands
        if n < 0:
            n = operands[at] if at < len(operands) else 0
            at += 1
        end, stop = at + n, integer + type.n_integers
        yield type, operands[at:end], integers[integer:stop]
        at, integer = end, stop
    if at != len(operands) or integer != len(integers):
        raise EdBatchError(DAMAGED)


class Closed(list[int]):
    """The column of types of a graph in which nothing is recorded any more, for a reason, nor is any type found."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def append(self, *_: Any) -> NoReturn:
        """Refuse."""
        raise EdBatchError(self.reason)

    extend = __iadd__ = __getitem__ = append
    lines = property(append)


class Columns(Builder):
    """Nodes as they are recorded: building one costs about as much as appending to two lists.

    Node v has type `types[v]`; the ids of its operands (node and view; parameters are part of the type) follow those of
    node v - 1 in `operands`, those of a variadic node behind their count. Its integers (a look-up index, a label, a
    seed) follow in `integers`. `n` counts all nodes ever recorded; what has been taken over by the runtime is cleared
    from the lists.

    Attributes:
        types, operands, integers: of the nodes not yet taken over.
        inputs: arrays of the input nodes, found through their payload.
        constants: nodes whose value is the same for the whole graph (numbers, zeros, ones, parameters): (id, spec).
            Not expressions: they hold the graph, are not seen by the garbage collector, and would keep it for ever.
        inlines: whether the body of a cell that is called is recorded, and not the cell.
        careful: whether calls of cells may not be recorded as the last ones.
        first_draw: see `draw`; -1 before the first.
        next_draw: the same, of the stream that draws now.
        stream: which draws: 0, the graph's own; each program of `edbatch.run` has one.
        programs: calls of `edbatch.run` in it so far.
        serial: a number of its own: cells look once for each whether their traces are still right.
        guards: what they have found to be right since.
        expression_class: the class of its expressions.
        base: of a graph whose nodes stand for several of another: that one; else None.
        array_graphs: of which this is the base, by how many nodes one of theirs stands for.
    """

    __slots__ = (
        "__weakref__", "array_graphs", "base", "first_draw", "guards", "inlines", "inputs", "next_draw", "options",
        "programs", "stream",
    )  # fmt: skip

    #: Whether there may be something else among the integers.
    holds_objects = False

    def __init__(
        self, dtype: Any = "float32", options: Options | None = None, base: Columns | None = None,
        expression_class: type[Expression] = Expression,
    ) -> None:  # fmt: skip
        self.n = 0
        self.inputs: list[Any] = []
        self.constants: dict[Any, tuple[int, Spec]] = {}
        self.dtype = float_dtype(dtype) if base is None else base.dtype
        self.options: Options = base.options if base is not None else options or current_options()
        self.types, self.operands, self.integers = self._new_columns()
        self.inlines: bool = not self.options.cells if base is None else base.inlines
        self.careful = self.inlines or self.options.check if base is None else base.careful
        self.first_draw = -1
        self.next_draw = -1
        self.stream = 0
        self.programs = 0
        self.serial = next(_serials) if base is None else base.serial
        self.guards: dict[Any, Noted] = {}
        self.expression_class = expression_class if base is None else base.expression_class
        self.base = base
        self.array_graphs: dict[int, ref[ArrayGraph]] = {}

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied and pickled: two graphs would give back the same memory."""
        raise EdBatchError(
            "a graph, or an expression of one, cannot be copied, pickled or sent to another process; expected its "
            "value: expression.value()"
        )

    def add(self, type: NodeType, operands: Sequence[int], integers: Sequence[int] = ()) -> Expression:
        """Record one node of `type`; its operands and integers as in the class description."""
        return self.expression_class(self, self.append((type.id,), operands, integers), type.out)

    def place(
        self, blocks: tuple[Block, ...], columns: Sequence[Any] = (), draws: int = 0, instances: Instances | None = None
    ) -> int:
        """Record the nodes of blocks, see `place_in_python`; `draws`: how many numbers are drawn in all."""
        return place(self, blocks, columns, self.take_draws(draws)[0] if draws else 0, instances)

    def repeat(self, type: NodeType, n: int, columns: Sequence[Any], line: str | None = None) -> int:
        """Record n nodes of a type; the id of the first.

        Args:
            columns: of their operands and integers: one for all, or an array (int64) with one for each.
            line: where they were recorded, if not here.
        """
        block = one_node(type, len(columns) - type.n_integers)
        if isinstance(self.types, LinedTypes):
            block = block._replace(lines=(line or users_line(),))
        return self.place((block,), columns, 0, Instances([n]))

    def constant(self, key: Any, type: Callable[[], NodeType]) -> Expression:
        """The one node of a constant without payload; recorded at its first use."""
        found = self.constants.get(key)
        if found is None:
            made = self.add(type(), ())
            found = self.constants[key] = (made.id, made.spec)
        return self.expression_class(self, *found)

    def take_draws(self, count: int) -> Sequence[Any]:
        """Integers for what is random in the graph: the next ones of a sequence of its own, see `edbatch.seed`."""
        if not count:
            return ()
        first = self.next_draw
        if first < 0:
            if self.first_draw < 0:
                self.first_draw = next_graph()
            first = first_draw(self.first_draw, self.stream) if self.stream else self.first_draw
        self.next_draw = first + count
        return range(first, first + count)

    def take(self) -> Recorded:
        """Hand over what was recorded since the last call; the columns are new ones then."""
        self.flush_arrays()
        lines = self.types.lines if isinstance(self.types, LinedTypes) else []
        columns = as_taken(self.types, "i"), as_taken(self.operands, "q"), as_taken(self.integers, "q")
        self.types, self.operands, self.integers = self._new_columns()
        return Recorded(*columns, lines)

    @property
    def keeps(self) -> str:
        """The name of what keeps what is recorded for other calls, so that it may depend on no value; else empty."""
        return "" if self.base is None else self.base.keeps

    @property
    def is_trace(self) -> bool:
        """Whether what is recorded here is a cell's body, or kept for other calls, so that values cannot be read."""
        return self.base is not None and self.base.is_trace

    def refuse_reading(self, what: str) -> None:
        """Refuse to read a value, by `what`, if what is recorded is kept."""
        if self.keeps:
            raise EdBatchError(
                f"{self.keeps} reads a value, by {what}; what it records is kept, and so would be what is there now. "
                "Use the parameter or expression itself (eb.stop_gradient stops its gradient), or pass the value as an "
                "argument"
            )

    def held_arrays(self) -> list[ArrayGraph]:
        """The graphs of arrays of expressions that are there still."""
        return [graph for at in self.array_graphs.values() if (graph := at()) is not None]

    def flush_arrays(self) -> None:
        """Record what waits in arrays of expressions; nobody can read what waited in those that are gone."""
        if self.array_graphs:
            held = {n: graph for n, at in self.array_graphs.items() if (graph := at()) is not None}
            for graph in held.values():
                graph.flush()
            self.array_graphs = {n: self.array_graphs[n] for n in held}

    def _new_columns(self) -> tuple[Any, Any, Any]:
        if self.options.trace_lines:
            return LinedTypes(), [], []
        return ([], [], []) if self.holds_objects else new_columns()

    def note(self, guard: Guard, owner: Any, static: Any = None, besides: frozenset[str] | None = None) -> None:
        """Note that a guard held at a call, with its roots; `besides`: attributes that later calls compare alone."""
        if self.base is not None:
            self.base.note(guard, owner, static, besides)
        elif besides is not None:
            self.guards[id(guard), id(owner), besides] = guard, owner, static, besides

    def expect_unchanged(self) -> None:
        """Raise an error if something that calls depend on has changed; calls from now on compare anew."""
        expect_unchanged(self.guards.values())
        self.guards.clear()
        self.serial = next(_serials)
        if self.array_graphs:
            for graph in self.held_arrays():
                graph.serial = self.serial

    def may_mean_each(self, rows: int) -> bool:
        """Whether so many rows of an array may be meant for the entries of arrays of expressions, one for each."""
        return False

    def refuse_rows(self, place: str, shape: Shape) -> None:
        """Refuse an array that may be meant so."""
        raise EdBatchError(
            f"{place}: an array of shape {shape} is the same for each of {shape[0]} entries, and larger than they are; "
            "expected eb.array(x) of an array x with a row for each entry, or eb.input(x) of one for all"
        )

    def constant_of_base(self, make: Callable[..., Expression], *args: Any) -> Expression:
        """A placeholder for a constant that `make` records in the base."""
        return self.placed(make(self.base, *args))

    def compile(self, body: Body, arguments: Sequence[str]) -> Compiled:
        """The body of a cell made ready to run; the runtime knows how. `arguments`: names, for reports."""
        if self.base is None:
            raise NotImplementedError
        return self.base.compile(body, arguments)

    def note_read(self, value: float) -> None:
        """Be told what `float(x)` has read; only graphs with a backward pass want to know."""

    def _unknown(self, *_: Any, **__: Any) -> Any:
        """What only some graphs know how to do."""
        raise NotImplementedError

    #: The value and the gradient of an expression, its backward pass, the values of several (by ids and spec) as an
    #: array: the runtime knows how. What stands here for an expression of the base: a graph that has one knows how.
    value = gradient = backward = rows = placed = _unknown

    def type_of(self, expression: Expression) -> NodeType:
        """The type of an expression's node."""
        return TYPES[self.types[expression.id & NODE_MASK]]


def current_graph() -> Columns:
    """The graph of the innermost `with eb.Graph():`, into which `eb.input` and the like record.

    In a cell, a vertex function or a replayed function it is one of theirs, see `Graph.is_trace`: no `Graph`, but with
    the same `dtype` and `expression_class`.

    Raises:
        EdBatchError: there is none.

    Example:
        >>> import edbatch as eb
        >>> with eb.Graph() as graph:
        ...     eb.current_graph() is graph, graph.is_trace
        (True, False)
    """
    graph = _top().value or graphs.innermost()
    if graph is None:
        raise EdBatchError("no graph: build expressions inside `with eb.Graph() as graph:`")
    return graph
