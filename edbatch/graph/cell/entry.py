"""What is kept of the traces of a cell: what a call records, and while it is right."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from edbatch.graph.array_graph import class_of_one
from edbatch.graph.cell.body import Body
from edbatch.graph.cell.keywords import is_gone
from edbatch.graph.cell.tables import Compiled
from edbatch.graph.cell.tree import TreeDef, flatten
from edbatch.graph.columns import Columns
from edbatch.graph.expression import Expression
from edbatch.graph.guard import Guard
from edbatch.graph.node_type import NodeType
from edbatch.graph.op import Op
from edbatch.graph.spec import ParameterSpec, Shape, Spec

NO_BODY = Body((), (), (), 0)
ExpressionClass = type[Expression]


@dataclass(frozen=True, eq=False)
class CellOp(Op):
    """The op of one traced cell; the runtime compiles its kernel from the body.

    Args:
        names: of its operands, then of its integers.
        has_early, has_late: whether something in it may not wait for a recurrence, or not be needed by it.
        looks_up: whether it has a large product of what is looked up alone, which is the same for equal integers.
        splits: how it has been split so far (see `graph.cell.split`).
        is_early: whether it is a part that was split off, which no user holds.
    """

    body: Body = NO_BODY
    compiled: Compiled = field(default_factory=lambda: Compiled(NO_BODY, NO_BODY))
    names: tuple[str, ...] = ()
    has_early: bool = False
    has_late: bool = False
    looks_up: bool = False
    splits: dict[Any, Any] = field(default_factory=dict)
    is_early: bool = False


def cell_op(name: str, body: Body, **known: Any) -> CellOp:
    """The op of a body; `known`: more of `CellOp`."""
    return CellOp(name, _inferred, _inferred, payload=body.payloads, body=body, **known)


def _inferred(*_: Any) -> Any:
    raise AssertionError("a cell's result comes from its trace and its kernel from the runtime")


@dataclass(eq=False)
class CellTrace:
    """What a call records, for one tuple of argument specs, and while it is right.

    Args:
        specs: per argument its spec; for an integer, the size that it indexes.
        draws: how many integers a call draws, for what is random in it; they follow those it is given.
        outs: per returned expression the step from the node's id to the expression's, and its spec.
        body: as it was traced.
        guard, expression_class: what it is right for.
        serial: of the graph in which it last was.
        mixed, labels: positions of integers that index things of different sizes, and that are labels.
        enlarging: see `Trace`.
    """

    specs: tuple[Any, ...]
    type: NodeType
    draws: int
    outs: tuple[tuple[int, Spec], ...]
    tree: TreeDef
    body: Body
    guard: Guard
    expression_class: ExpressionClass
    serial: int
    mixed: tuple[int, ...] = ()
    labels: tuple[int, ...] = ()
    enlarging: frozenset[Shape] = frozenset()

    @cached_property
    def node(self) -> tuple[int, int, Any]:
        """The type's id; the form of what is returned (1: an expression, 2: a pair, 0: anything else, and what draws);
        and what that is made of: a spec, steps and specs, or this."""
        if not self.draws and self.tree.kind is None:
            return self.type.id, 1, self.outs[0][1]
        if not self.draws and self.tree == _PAIR:
            return self.type.id, 2, (*self.outs[0], *self.outs[1])
        return self.type.id, 0, self

    def recorded(self, graph: Columns, node: int) -> Any:
        """Draw what a call draws, whose node is in the graph, and return what it returns."""
        graph.integers.extend(graph.take_draws(self.draws))
        return self.tree.build([graph.expression_class(graph, node + step, spec) for step, spec in self.outs])

    def holds(self, graph: Columns, *roots: Any) -> bool:
        """Whether the function would record the same in a graph."""
        return self.expression_class is class_of_one(graph) and self.guard.holds(*roots)


_PAIR = flatten((0, 0))[1]


class Traces(dict[Any, tuple[CellTrace, ...]]):
    """The traces that an owner keeps, by specs and keywords, the latest first; copies of the owner start anew.

    Attributes:
        warned: whether there are known to be many.
        gone: how many have been forgotten because what was given by keyword is no more.
    """

    warned = False
    gone = 0

    def right(self, key: Any, graph: Columns, roots: tuple[Any, Any]) -> CellTrace | None:
        """The trace of a key that is right now; it becomes the first."""
        known = self.get(key, ())
        found = next((one for one in known if one.holds(graph, *roots)), None)
        if found is not None:
            found.serial = graph.serial
            self[key] = (found, *(other for other in known if other is not found))
        return found

    def forget_gone(self) -> None:
        """Forget the traces of calls with what is no more: a program may make many models."""
        for key in list(self):
            specs, *_, static = key
            if is_gone(static):
                del self[key]
                self.gone += 1
            elif any(isinstance(spec, ParameterSpec) and spec.parameter() is None for spec in specs):
                del self[key]

    def __reduce__(self) -> tuple[Any, ...]:
        return Traces, ()
