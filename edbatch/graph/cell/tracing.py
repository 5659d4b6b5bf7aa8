"""Tracing a cell: its function is run on placeholders, twice, and what it records becomes an op."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from edbatch.errors import EdBatchError
from edbatch.graph.array_graph import class_of_one
from edbatch.graph.cell.body import Body, body_of, in_a_row, steps_to_outputs
from edbatch.graph.cell.entry import CellTrace, cell_op
from edbatch.graph.cell.keywords import may_change
from edbatch.graph.cell.passes.split_stages import may_split
from edbatch.graph.cell.trace import Payload, Trace, traced
from edbatch.graph.cell.tree import TreeDef, flatten
from edbatch.graph.columns import Columns
from edbatch.graph.expression import Expression
from edbatch.graph.expression_array import ExpressionArray
from edbatch.graph.function_state import function_state
from edbatch.graph.integers import Integers
from edbatch.graph.model.parameters import Parameter
from edbatch.graph.node_type import NodeType, intern
from edbatch.graph.record import to_node, to_operand
from edbatch.graph.spec import Spec


@dataclass(frozen=True)
class Arguments:
    """What a call gives.

    Args:
        owner: the object whose method is called, if it is one.
        operands, labels: expressions, parameters and integers, and their names; those given by keyword last.
        keywords: how many are given by keyword.
        static: what else is given by keyword, and fixed when the cell is traced.
    """

    owner: tuple[Any, ...]
    operands: tuple[Any, ...]
    labels: tuple[str, ...]
    keywords: int
    static: dict[str, Any]

    @property
    def objects(self) -> dict[str, Any] | None:
        """What is given by keyword and may change; None if nothing is."""
        return {key: x for key, x in self.static.items() if may_change(x)} or None

    def chosen(self, choose: Callable[[Any], bool]) -> list[str]:
        """The labels of operands that are chosen."""
        return [label for label, x in zip(self.labels, self.operands, strict=True) if choose(x)]


def is_expression(x: Any) -> bool:
    """Whether an argument is a node of the graph."""
    return isinstance(x, Expression)


_INTEGERS = (int, np.integer, Integers, Payload)


def is_integer(x: Any) -> bool:
    """Whether an argument is known at run time only."""
    return isinstance(x, _INTEGERS) and not isinstance(x, bool)


def trace_cell(
    name: str, function: Callable[..., Any], given: Arguments, graph: Columns, known: tuple[CellTrace, ...]
) -> CellTrace:
    """Trace a call twice; where one of `known` computes the same, it records what that does."""
    roots = given.owner[0] if given.owner else None, given.objects
    try:
        body, tree, trace = run(name, function, given, graph)
        again = run(name, function, given, graph)
        found = difference(body, again[0]) or ("what it returns" if tree != again[1] else "")
        if found:
            guard = function_state(f"cell {name}", function, *roots)
            run(name, function, given, graph)
            change = guard.change(*roots)
            found = found if change is None else f"{change.path} changes while it runs"
            raise EdBatchError(
                f"keeps state: traced twice, it computes two different things ({found}); a cell must be a function of "
                "its arguments, of parameters, and of what does not change while it runs. Use eb.dropout, or pass what "
                "is random, or another each time, as an argument"
            )
        guard = function_state(f"cell {name}", function, *roots)
    except RecursionError as error:
        raise EdBatchError(
            f"cell {name}: it calls itself, or something that does, without an end; what a cell calls must end by "
            "what is known when it is traced (sizes, attributes, keyword arguments): call it for every node of a tree "
            "from outside"
        ) from error
    except EdBatchError as error:
        prefix, text = f"cell {name}", str(error)
        joint = " " if text.startswith("keeps state") else ": "
        named = EdBatchError(text if text.startswith(prefix) else f"{prefix}{joint}{text}")
        raise named.with_traceback(error.__traceback__) from None  # which shows the line in the function
    payloads = iter(trace.payloads)
    specs = tuple([next(payloads).limit if is_integer(x) else x.spec for x in given.operands])
    enlarging = frozenset(trace.enlarging)
    right: dict[str, Any] = {"expression_class": class_of_one(graph), "serial": graph.serial}
    for one in known:
        if not difference(one.body, body) and (one.tree, one.specs, one.enlarging) == (tree, specs, enlarging):
            return replace(one, guard=guard, **right)
    integers = [at for at, x in enumerate(given.operands) if is_integer(x)]
    of_integers = dict(zip(integers, trace.payloads, strict=False))  # others are drawn
    mixed = tuple([at for at, x in of_integers.items() if not x.is_alike])
    labels = tuple([at for at, x in of_integers.items() if x.is_label])
    draws = len(trace.payloads) - len(integers)
    type, outs = _compiled(name, given, graph, body, draws)
    return CellTrace(
        specs, type, draws, outs, tree, body, guard, **right, mixed=mixed, labels=labels, enlarging=enlarging
    )


def _compiled(
    name: str, given: Arguments, graph: Columns, body: Body, draws: int
) -> tuple[NodeType, tuple[tuple[int, Spec], ...]]:
    """The type of a body, compiled, and what it returns, see `CellTrace`."""
    arguments = given.chosen(is_expression)
    compiled = graph.compile(body, arguments)
    body, row = in_a_row(compiled.body)
    op = cell_op(
        name + "".join(f" {key}={value!r}" for key, value in sorted(given.static.items())),
        body,
        compiled=compiled,
        names=(*arguments, *given.chosen(is_integer), *["mask"] * draws),
        **dict(zip(("has_early", "has_late", "looks_up"), may_split(compiled.splittable), strict=True)),
    )
    return intern(op, (), body.arguments, row), steps_to_outputs(body, row)


def run(name: str, function: Callable[..., Any], given: Arguments, graph: Columns) -> tuple[Body, TreeDef, Trace]:
    """Trace once: what the function computes, how it returns it, and the trace."""
    trace = Trace(name, graph.dtype, graph.options, class_of_one(graph))
    placed: list[Any] = []
    for x, label in zip(given.operands, given.labels, strict=True):
        if is_integer(x):
            placed.append(trace.payload(label))
        else:
            placed.append(x if isinstance(x, Parameter) else trace.argument(x.spec))
    split = len(placed) - given.keywords
    named = dict(zip(given.labels[split:], placed[split:], strict=True))
    try:
        returned = traced(trace, lambda: function(*given.owner, *placed[:split], **named, **given.static))
        leaves, tree = flatten(returned)
    finally:
        trace.has_ended = True
    for x in leaves:
        if isinstance(x, ExpressionArray):
            raise EdBatchError("it returns an array of expressions; expected single ones, of which calls make arrays")
        if isinstance(x, Expression) and x.graph is not trace:
            raise EdBatchError("it returns an expression that it did not compute")
        if isinstance(x, Coroutine):
            x.close()  # it is refused below, and nobody will wait for it
    if not leaves:
        raise EdBatchError("it returns no expression")
    nodes = [to_node(trace, to_operand("result", trace, x)) for x in leaves]
    arguments = tuple(x.spec for x in given.operands if isinstance(x, Expression))
    return body_of(trace, arguments, [x.id for x in nodes], len(trace.payloads)), tree, trace


def difference(a: Body, b: Body) -> str:
    """The first thing in which two traces of one function differ; empty if they compute the same."""
    for x, y in zip(a.nodes, b.nodes, strict=False):
        if (x.type, x.operands, x.payload) != (y.type, y.operands, y.payload):
            return f"{x.type}, then {y.type}" if x.type is not y.type else f"{x.type}, of other operands"
        if _bits(x.value) != _bits(y.value):
            return f"a number that was {x.value}, then {y.value}"
    if len(a.nodes) != len(b.nodes):
        return f"{len(a.nodes)} operations, then {len(b.nodes)}"
    return "" if a.outputs == b.outputs else "what it returns"


def _bits(value: Any) -> Any:
    return value if value is None else (value.shape, value.tobytes())


def expect_same(name: str, function: Callable[..., Any], given: Arguments, graph: Columns, known: CellTrace) -> None:
    """Trace once more, and raise an error if the function computes something else now."""
    body, tree, _ = run(name, function, given, graph)
    found = difference(known.body, body) or ("what it returns" if tree != known.tree else "")
    if found:
        raise EdBatchError(
            f"cell {name}: it computes something else than when it was traced ({found}), and nothing that it is "
            "compared by has changed; pass what it depends on as an argument, or as a keyword-only parameter"
        )
