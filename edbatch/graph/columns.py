"""The recorded graph: append-only columns, and the graph that is current."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn
from weakref import ref

import numpy as np

from edbatch.base.blocks import Blocks
from edbatch.errors import EdBatchError
from edbatch.graph.draws import first_draw, next_graph
from edbatch.graph.expression import Expression
from edbatch.graph.lines import LinedTypes, users_line
from edbatch.graph.node_type import NodeType
from edbatch.graph.options import Options, current_options
from edbatch.graph.spec import Spec, float_dtype

DAMAGED = "the graph is damaged: recording a node was interrupted, or another thread recorded one at the same time"

if TYPE_CHECKING:
    from edbatch.graph.array_graph import ArrayGraph
    from edbatch.graph.cell.body import Body
    from edbatch.graph.cell.compiled import Compiled

#: Of graphs, and of traces.
graphs: Blocks[Columns] = Blocks("edbatch_graph")
_top = graphs.top.get

_serials = count()

#: Integers that are better appended to the lists than made an array of.
SMALL = 64


class Recorded(NamedTuple):
    """Nodes as arrays.

    Attributes:
        types: type ids (int32), or a list of them.
        args: their integers (int64), or a list.
        lines: where each was recorded, if that is noted.
    """

    types: Any
    args: Any
    lines: list[str]


class Columns:
    """Nodes as they are recorded: building one costs about as much as appending to two lists.

    Node v is the v-th entry of `types` and the next integers of `args`: first the ids of its operands (node and view;
    parameters are part of the type), then its payload (a look-up index, a label, a seed). A variadic node's
    integers are preceded by their count. `n` counts all nodes ever recorded; what has been taken over by the runtime is
    cleared from the lists.

    Attributes:
        types: type ids of the nodes not yet taken over, but for those in `chunks`.
        args: their integers.
        chunks: nodes that were recorded before those in the lists.
        n: number of nodes.
        inputs: arrays of the input nodes, found through their payload.
        constants: nodes whose value is the same for the whole graph (numbers, zeros, ones, parameters): (id, spec).
            Not expressions: they hold the graph, are not seen by the garbage collector, and would keep it for ever.
        dtype: of inputs and constants.
        inlines: whether the body of a cell that is called is recorded, and not the cell.
        options: in force when the graph was opened.
        variant: of the options that cells are compiled with (see `Options.variant`); empty in the common case.
        careful: whether calls of cells have to look at `inlines` and `variant`.
        first_draw: see `draw`; -1 before the first.
        next_draw: the same, of the stream that draws now.
        stream: which draws: 0, the graph's own; each program of `edbatch.run` has one.
        programs: calls of `edbatch.run` in it so far.
        serial: a number of its own: cells look once in each graph whether their traces are still right.
        handle: the class of its expressions.
        base: of a graph whose nodes stand for several of another: that one; else None.
        array_graphs: of which this is the base, by how many nodes one of theirs stands for.
    """

    __slots__ = (
        "__weakref__",
        "args",
        "array_graphs",
        "base",
        "careful",
        "chunks",
        "constants",
        "dtype",
        "first_draw",
        "handle",
        "inlines",
        "inputs",
        "n",
        "next_draw",
        "options",
        "programs",
        "serial",
        "stream",
        "types",
        "variant",
    )

    def __init__(self, dtype: Any = "float32", options: Options | None = None) -> None:
        self.args: list[int] = []
        self.n = 0
        self.inputs: list[Any] = []
        self.constants: dict[Any, tuple[int, Spec]] = {}
        self.dtype = float_dtype(dtype)
        self.options = options or current_options()
        self.types: list[int] = LinedTypes() if self.options.trace_lines else []
        self.inlines = not self.options.cells
        self.variant = self.options.variant
        self.careful = self.inlines or self.variant != ""
        self.first_draw = -1
        self.next_draw = -1
        self.stream = 0
        self.programs = 0
        self.serial = next(_serials)
        self.chunks: list[Recorded] = []
        self.handle: type[Expression] = Expression
        self.base: Columns | None = None
        self.array_graphs: dict[int, ref[ArrayGraph]] = {}

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied and pickled: two graphs would give back the same memory."""
        raise EdBatchError(
            "a graph, or an expression of one, cannot be copied, pickled or sent to another process; expected its "
            "value: expression.value()"
        )

    def add(self, type: NodeType, args: tuple[int, ...] | list[int]) -> Expression:
        """Record one node of `type`; `args` as in the class description."""
        node = self.n
        self.n = node + 1
        self.types.append(type.id)
        self.args.extend(args)
        return self.handle(self, node, type.out)

    def add_several(self, type: NodeType, args: list[int], count: int) -> list[Expression]:
        """Record so many nodes of a type; `args`: those of one after the other."""
        node = self.n
        self.n = end = node + count
        self.types.extend([type.id] * count)
        self.args.extend(args)
        out = type.out
        handle = self.handle
        return [handle(self, id, out) for id in range(node, end)]

    def extend(self, type: NodeType, n: int, args: np.ndarray | list[int], line: str | None = None) -> int:
        """Record n nodes of a type, with all their integers one after the other; the id of the first.

        Args:
            line: where they were recorded, if that is noted; by default here.
        """
        first = self.n
        self.n = first + n
        if len(args) <= SMALL and not isinstance(self.types, LinedTypes):
            self.types += [type.id] * n
            self.args += args if isinstance(args, list) else args.tolist()
            return first
        lines = [line or users_line()] * n if isinstance(self.types, LinedTypes) else []
        self._close_chunk()
        self.chunks.append(Recorded(np.full(n, type.id, np.int32), np.asarray(args, np.int64), lines))
        return first

    def constant(self, key: Any, type: Callable[[], NodeType]) -> Expression:
        """The one node of a constant without payload; recorded at its first use."""
        found = self.constants.get(key)
        if found is None:
            made = self.add(type(), ())
            found = self.constants[key] = (made.id, made.spec)
        return Expression(self, *found)

    @property
    def waiting(self) -> int:
        """How many nodes have not been taken over."""
        return len(self.types) + sum([len(chunk.types) for chunk in self.chunks])

    def draw(self, count: int) -> Sequence[Any]:
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
        """Hand over what was recorded since the last call."""
        if self.array_graphs:
            self._flush_array_graphs()
        if not self.chunks:
            taken = Recorded(self.types, self.args, self.types.lines if isinstance(self.types, LinedTypes) else [])
            self.types, self.args = LinedTypes() if isinstance(self.types, LinedTypes) else [], []
            return taken
        self._close_chunk()
        chunks, self.chunks = self.chunks, []
        types, args = (np.concatenate([chunk[at] for chunk in chunks]) for at in range(2))
        return Recorded(types, args, [line for chunk in chunks for line in chunk.lines])

    def _flush_array_graphs(self) -> None:
        """Record what waits in arrays of expressions; nobody can read what waited in those that are gone."""
        held = {n: graph for n, at in self.array_graphs.items() if (graph := at()) is not None}
        for graph in held.values():
            graph.flush()
        self.array_graphs = {n: self.array_graphs[n] for n in held}

    def _close_chunk(self) -> None:
        """Make one of what is in the lists."""
        if not self.types and not self.args:
            return
        types = np.fromiter(self.types, np.int32, len(self.types))
        args = np.array(self.args, np.int64)  # `fromiter` takes longer where ids have views (more than 30 bits)
        lines = list(self.types.lines) if isinstance(self.types, LinedTypes) else []
        self.chunks.append(Recorded(types, args, lines))
        self.types.clear()
        self.args.clear()

    def compile(self, body: Body, arguments: Sequence[str]) -> Compiled:
        """The body of a cell made ready to run; the runtime knows how. `arguments`: names, for reports."""
        raise NotImplementedError

    def value(self, expression: Expression) -> Any:
        """The value of one expression; the runtime knows how."""
        raise NotImplementedError

    def rows(self, ids: np.ndarray, spec: Spec) -> np.ndarray:
        """The values of expressions of one spec as an array, by their ids; the runtime knows how."""
        raise NotImplementedError

    def backward(self, expression: Expression, gradient: Any) -> None:
        """Compute the gradients of one expression; the runtime knows how."""
        raise NotImplementedError

    def gradient(self, expression: Expression) -> Any:
        """The gradient with respect to one expression; the runtime knows how."""
        raise NotImplementedError

    def type_of(self, expression: Expression) -> NodeType:
        """The type of an expression's node."""
        raise NotImplementedError


def current_graph() -> Columns:
    """The graph of the innermost `with eb.Graph():`.

    Raises:
        EdBatchError: there is none.
    """
    graph = _top().value or graphs.innermost()
    if graph is None:
        raise EdBatchError("no graph: build expressions inside `with eb.Graph() as graph:`")
    return graph
