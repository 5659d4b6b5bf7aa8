"""What a vertex function is given: a vertex."""

from __future__ import annotations

from typing import Any, NamedTuple

from edbatch.errors import EdBatchError, shown
from edbatch.graph.cell.tree import TreeDef, flatten
from edbatch.graph.expression import Expression
from edbatch.graph.integers import Integers
from edbatch.graph.record import to_own_node
from edbatch.graph.spec import Spec
from edbatch.vertices.column import Column
from edbatch.vertices.vertex_graph import IndexArgument, Input, Source, VertexGraph


class Form(NamedTuple):
    """What a vertex gives: its nesting (None: nothing), specs, and the views that these are seen through.

    Attributes:
        begin: the first of these among the results of the block.
    """

    tree: TreeDef | None
    specs: tuple[Spec, ...] = ()
    views: tuple[int, ...] = ()
    begin: int = 0


class Vertex:
    """One vertex of an input graph, as a vertex function sees it (see `edbatch.vertex`).

    The function says what every vertex computes that is like this one: of its kind, with as many children. It is called
    once for all of these.
    """

    def __init__(self, graph: VertexGraph, kind: int, forms: list[Form], inputs: Any) -> None:
        self._graph = graph
        self._kind = kind
        self._forms = forms
        self._inputs = inputs
        self._gathered: dict[int, Any] = {}
        self._pulled: dict[Input, Any] = {}
        self._results: dict[str, tuple[list[Expression], TreeDef]] = {}

    @property
    def kind(self) -> int:
        """Which of several functions it takes."""
        return self._kind

    @property
    def n_children(self) -> int:
        """How many vertices it gathers."""
        return len(self._forms)

    def gather(self, child: int | None = None) -> Any:
        """What a child has scattered, or what all have.

        Args:
            child: its position among the vertex's children, which must exist; by default all.

        Returns:
            Of one child, an expression, or several as they were scattered: of `scatter(h, c)` a tuple of two. Of all,
            a list of these, which may be empty.

        Raises:
            EdBatchError: there is no such child, or it has scattered nothing.
        """
        if child is None:
            return [self.gather(at) for at in range(self.n_children)]
        if child.__class__ is not int or not -self.n_children <= child < self.n_children:
            raise EdBatchError(f"gather({shown(child)}): the vertex has {_children(self.n_children)}")
        child %= self.n_children
        if child not in self._gathered:
            form = self._forms[child]
            if form.tree is None:
                raise EdBatchError(f"gather({child}): that vertex scatters nothing")
            leaves = [
                self._graph.placeholder(Source((child, at), view=view), spec)
                for at, (spec, view) in enumerate(zip(form.specs, form.views, strict=True))
            ]
            self._gathered[child] = form.tree.build(leaves)
        return self._gathered[child]

    def pull(self) -> Any:
        """The vertex's external input, in the nesting of tuples and dictionaries that was given for its kind.

        Of an array of integers it is an integer that indexes something (`eb.lookup`, a label, an argument of a cell);
        of an array of numbers or an `ExpressionArray`, an expression; what is one expression for all is that one.

        Raises:
            EdBatchError: there is none.
        """
        if self._inputs is None:
            raise EdBatchError(
                "pull(): these vertices have no input; give one after the input graph, in the order of kinds"
            )
        leaves, tree = flatten(self._inputs)
        return tree.build([self._input(Input(at), x) for at, x in enumerate(leaves)])

    def scatter(self, *results: Any) -> None:
        """Give something to those that gather the vertex: an expression, or several, or nestings of them.

        Raises:
            EdBatchError: it has scattered something already, or it is no expression.
        """
        self._give("scatter", results)

    def push(self, *results: Any) -> None:
        """Give something to the caller of the vertex function; as `scatter`."""
        self._give("push", results)

    def _input(self, leaf: Input, x: Any) -> Any:
        if not isinstance(x, Column | Integers):
            return to_own_node("pull()", self._graph, x)
        found = self._pulled.get(leaf)
        if found is None:
            if isinstance(x, Integers):
                found = IndexArgument(self._graph, leaf, x)
            else:
                assert x.view is not None  # see `seen_alike`
                found = self._graph.placeholder(Source(leaf, view=x.view), x.spec)
            self._pulled[leaf] = found
        return found

    def _give(self, name: str, results: tuple[Any, ...]) -> None:
        if name in self._results:
            raise EdBatchError(f"{name}: called twice; expected {name}(first, second) for several results")
        leaves, tree = flatten(results[0] if len(results) == 1 else results)
        if not leaves:
            raise EdBatchError(f"{name}: expected at least one expression")
        graph = self._graph
        nodes = [to_own_node(name, graph, x) for x in leaves]
        for x in nodes:
            if x.graph is not graph:
                raise EdBatchError(f"{name}: expected expressions, got {x!r}, which is of another graph")
        self._results[name] = nodes, tree

    def _check_gathered(self) -> None:
        """Refuse what leaves a child out."""
        left = [child for child in range(self.n_children) if child not in self._gathered]
        if left:
            which = f"child {left[0]} is" if len(left) == 1 else f"children {', '.join(map(str, left))} are"
            raise EdBatchError(
                f"the vertex has {_children(self.n_children)}, and {which} not gathered; gather() is of all children"
            )


def _children(n: int) -> str:
    return {0: "no children", 1: "one child"}.get(n, f"{n} children")
