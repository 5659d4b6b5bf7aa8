"""The graph that a vertex function records in: of one vertex, and written out for all that are like it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from edbatch.errors import EdBatchError
from edbatch.graph.block import NOTHING
from edbatch.graph.cell.trace import Constant, FunctionGraph, Payload
from edbatch.graph.columns import Closed, Columns
from edbatch.graph.expression import Expression
from edbatch.graph.integers import Integers
from edbatch.graph.spec import Shape, Spec
from edbatch.graph.views import NODE_BITS


class Input(NamedTuple):
    """The number of an input of a kind.

    Attributes:
        size: of an integer in a node: it is an index below it, or a label, which is not negative; 0: an expression.
        place: of an integer, for errors.
    """

    number: int
    size: int = 0
    is_label: bool = False
    place: str = ""


class Source(NamedTuple):
    """What a placeholder stands for in each vertex.

    Attributes:
        of: a child and which of its results, an input, a constant, or `NOTHING`: the expression with that id.
        view: that it is seen through.
    """

    of: tuple[int, int] | Input | Constant | int
    id: int = 0
    view: int = 0


class IndexArgument(Payload):
    """An integer input of a vertex, known when the function has been recorded."""

    __slots__ = ("graph", "input", "values")

    graph: VertexGraph
    largest = 1 << 63  # of all sizes: whoever uses it asks `used_in`

    def __init__(self, graph: VertexGraph, input: Input, values: Integers) -> None:
        super().__init__(graph.name, 0, "pull()")
        self.graph = graph
        self.input = input
        self.values = values

    @property
    def has_negative(self) -> bool:
        """Whether one of those of all vertices counts from the end: what is recorded then is of these alone."""
        self.graph.is_kept = False
        return self.values.has_negative

    def used_in(self, size: int, place: str) -> Input:
        """What stands for it among a node's integers."""
        return self.input._replace(size=size, place=place)

    def used_as_label(self, classes: int, place: str) -> Input:
        """The same of a label."""
        return Input(self.input.number, classes, True, place)

    def refused(self, use: str = "") -> EdBatchError:
        """The error about any other use."""
        return EdBatchError(
            f"{self.graph.name}: an integer that is pulled is another for each vertex{use}; it may only be an index "
            "(x[pull()], lookup, pick), a label, or an integer argument of a cell. To compute with it, give floats; "
            "what decides what is computed is the vertex's kind"
        )


class VertexGraph(FunctionGraph):
    """Nodes of one vertex; operands from elsewhere are placeholders among them.

    Attributes:
        sources: by number of a node, what it stands for, if it is a placeholder.
        vertices: how many there are of its kind.
        is_kept: whether what is recorded depends on no value, and on no expression of this one graph.
        refusable: rows of arrays that were not refused for having as many as there are vertices.
        made: what makes each constant in a graph, and of what.
    """

    __slots__ = ("is_kept", "made", "refusable", "sources", "vertices")

    base: Columns
    count = 1
    holds_objects = True
    no_value = (
        ": an expression of one vertex has no value of its own; what it gives to scatter(...) or push(...) is an array "
        "of expressions, of all vertices, when the function has been called"
    )

    def __init__(self, base: Columns, name: str, vertices: int) -> None:
        super().__init__(f"vertex function {name}", base=base)
        self.sources: dict[int, Source] = {}
        self.vertices = vertices
        self.made: list[Any] = []
        self.is_kept = True
        self.refusable: set[int] = set()

    def refuse_reading(self, what: str) -> None:
        """Take note of a value that is read; the graph may refuse it."""
        self.is_kept = False
        super().refuse_reading(what)

    def may_mean_each(self, rows: int) -> bool:
        """Of more than one vertex."""
        self.refusable.add(rows)
        return rows == self.vertices > 1

    def refuse_rows(self, place: str, shape: Shape) -> None:
        """Refuse an array that may be meant so."""
        raise EdBatchError(
            f"{place}: an array of shape {shape} is the same for each of {shape[0]} vertices, and larger than what it "
            "is computed with; expected it as the input of the vertices, of which each pulls a row, or eb.input(x) of "
            "an array x that is one for all"
        )

    def placeholder(self, source: Source, spec: Spec) -> Expression:
        """What stands for something from elsewhere."""
        made = self.argument(spec)
        self.sources[made.id] = source
        return self.expression_class(self, made.id + (source.view << NODE_BITS), spec)

    def placed(self, x: Expression) -> Expression:
        """What stands for an expression of the base: the same one for all vertices."""
        self.is_kept = False
        return self._once((x.id, x.spec), lambda: Source(NOTHING, x.id, x.id >> NODE_BITS), x.spec)

    def constant_of_base(self, make: Callable[..., Expression], *args: Any) -> Expression:
        """A placeholder for a constant, which each graph has by itself."""

        def source() -> Source:
            self.made.append((make, *args))
            return Source(Constant(len(self.made) - 1))

        x = make(self.base, *args)
        return self._once((x.id, x.spec, Constant), source, x.spec)

    def _once(self, key: Any, source: Callable[[], Source], spec: Spec) -> Expression:
        found = self.constants.get(key)
        if found is None:
            made = self.placeholder(source(), spec)
            found = self.constants[key] = made.id, made.spec
        return self.expression_class(self, *found)

    def close(self) -> None:
        """Have nothing more recorded: the function has returned."""
        self.types = Closed(
            f"{self.name}: an expression of one vertex is used after the function has returned; what it gives to "
            "scatter(...) others gather, and what it gives to push(...) is an array of all vertices"
        )
