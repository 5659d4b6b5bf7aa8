"""What is kept of the traces of a cell: what a call records, and while it is right."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from edbatch.graph.array_graph import class_of_one
from edbatch.graph.cell.body import Body
from edbatch.graph.cell.keywords import is_gone
from edbatch.graph.cell.structure import Structure, flatten
from edbatch.graph.cell.tables import Compiled
from edbatch.graph.columns import Columns
from edbatch.graph.expression import Expression
from edbatch.graph.guard import Guard
from edbatch.graph.node_type import NodeType
from edbatch.graph.op import Op
from edbatch.graph.spec import ParameterSpec, Shape, Spec

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
        splits: how it has been split so far (see `graph.cell.split`).
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


def cell_op(name: str, body: Body, columns: tuple[int, ...], **known: Any) -> CellOp:
    """The op of a body; `known`: more of `CellOp`."""
    return CellOp(name, _inferred, _inferred, payload=body.payloads, body=body, columns=columns, **known)


def _inferred(*_: Any) -> Any:
    raise AssertionError("a cell's result comes from its trace and its kernel from the runtime")


@dataclass(frozen=True)
class Entry:
    """What a call records, for one tuple of argument specs.

    Args:
        specs: per argument its spec; for an integer, the size that it indexes.
        type: type of the node.
        draws: how many integers a call draws, for what is random in it; they follow those it is given.
        outs: per returned expression the step from the node's id to the expression's, and its spec.
        structure: how the expressions are returned.
        traced: the body as it was traced.
        mixed: the arguments that are integers and index things of different sizes.
        labels: those that are labels.
        enlarging: see `Trace`.
    """

    specs: tuple[Any, ...]
    type: NodeType
    draws: int
    outs: tuple[tuple[int, Spec], ...]
    structure: Structure
    traced: Body
    mixed: tuple[int, ...] = ()
    labels: tuple[int, ...] = ()
    enlarging: frozenset[Shape] = frozenset()

    @property
    def form(self) -> int:
        """1: a single expression, 2: a pair of them, 0: anything else, and what draws."""
        if self.draws:
            return 0
        if self.structure.kind is None:
            return 1
        return 2 if self.structure == flatten((0, 0))[1] else 0

    @property
    def out(self) -> Any:
        """What the fast way reads: of a single expression its spec, of a pair `outs` in one tuple, else this."""
        return (self, self.outs[0][1], (*self.outs[0], *self.outs[-1]))[self.form]

    def recorded(self, graph: Columns, node: int) -> Any:
        """What a call returns whose node, type and integers are in the graph, but for those that it draws."""
        graph.integers += graph.take_draws(self.draws)
        return self.structure.build([graph.expression_class(graph, node + step, spec) for step, spec in self.outs])


@dataclass
class Variant:
    """An entry, and what must be as it was when it was traced.

    Args:
        entry: what a call records.
        guard: of what the function depends on.
        expression_class: of what it computed with.
        serial: of the graph in which the guard was last seen to hold.
    """

    entry: Entry
    guard: Guard
    expression_class: type[Expression]
    serial: int

    def holds(self, graph: Columns, *roots: Any) -> bool:
        """Whether the function would record the same in a graph."""
        return self.expression_class is class_of_one(graph) and self.guard.holds(*roots)


class Traces(dict[Any, tuple[Variant, ...]]):
    """The variants of a cell that its owner keeps, by specs and keywords, those that were right last before others.

    A copy of the owner has parameters of its own, and starts anew.

    Attributes:
        warned: whether there are known to be many.
        gone: how many have been forgotten because what was given by keyword is no more.
    """

    warned = False
    gone = 0

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


class LastCall:
    """What the fast way compares a call with; see `Traces` of copies.

    Attributes:
        call: a plain tuple: unpacking one of a class of our own takes twice as long. At its end, attributes of the
            owner that every call looks at, and the serial number of the graph in which `variant` was last seen to be
            right.
    """

    __slots__ = ("call", "variant")

    def __init__(self, variant: Variant | None = None, watched: tuple[Any, ...] = ()) -> None:
        self.variant = variant
        self.call: tuple[Any, ...] = ()
        if variant is not None:
            x = variant.entry
            self.call = *x.specs, x.type.id, x.form, x.out, *watched, variant.serial

    def renew(self, owner: Any, kept: Any, name: str, graph: Columns) -> bool:
        """Whether it is right in another graph; then another one, for that graph, takes its place.

        A shallow copy of the owner (`copy.copy`) has the same last call, and may have other parameters since: what is
        right of the one says nothing of the other.

        Args:
            owner: of the traces.
            kept: where its last calls are: its dictionary, but for classes.
            name: under which it is there.
        """
        if self.variant is None or not self.variant.holds(graph, owner):
            return False
        graph.note(self.variant.guard, owner, None, self.variant.guard.looks)
        self.variant.serial = graph.serial
        renewed = LastCall()
        renewed.variant, renewed.call = self.variant, (*self.call[:-1], graph.serial)
        kept[name] = renewed
        return True

    def __reduce__(self) -> tuple[Any, ...]:
        return LastCall, ()
