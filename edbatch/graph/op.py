"""The op table: every operation EdBatch knows, declared once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from edbatch.errors import EdBatchError
from edbatch.graph.spec import Shape


class Kind(IntEnum):
    """How the runtime treats the nodes of an op."""

    COMPUTE = 0  # scheduled, one kernel a batch
    SOURCE = 1  # its value is at hand before anything runs: costs no batch
    VIEW = 2  # another way to look at its operand's memory: no node at all (see `graph.views`)


@dataclass(frozen=True)
class Sample:
    """Operands and attributes an op is tested on.

    Args:
        shapes: one shape per operand (for a variadic op: shapes of one call, all equal).
        low, high: range the operands' entries are drawn from; entries keep a distance from kinks.
        payload: exclusive upper bounds of the integers that go with each node.
    """

    shapes: tuple[Shape, ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    low: float = -2.0
    high: float = 2.0
    payload: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Op:
    """One operation.

    Args:
        name: its name, in types, policies and error messages.
        shape: the shape rule: (operand shapes..., **attributes) -> result shape; raises `EdBatchError` with
            what was expected. A variadic op's rule gets the one shape that all operands share.
        forward: of a view, `forward(rows, **attributes)`, which returns the view of rows with a leading batch axis;
            of a source, `forward(backend, out, values)`, which fills `out`. What computes has none: it is compiled
            from `scalar`, `reduction`, `picks` or `composite`.
        kind: see `Kind`.
        elementwise: operands broadcast like NumPy's, per sample.
        variadic: its last operands are lists of any length, all of one; all lengths are one type.
        singles: of a variadic op, how many operands come before its lists.
        places: for ops that only put operands side by side: the parts of a result, one per operand, that they go to.
        payload: how many integers go with each node (an index, a label, a seed).
        scalar: of an element-wise op, the expression for one entry (see `kernels.language.expressions`): operands are
            x, y and z, attributes go by name. In an op with a payload, `integer` is the node's, `index` the entry's on
            the first axis, `position` its number.
        reduction: of an op that makes one number of the entries along its attribute `axes`: the kernels' (see
            `kernels.language.ir.Reduce`).
        segments: whether that is a reduction over the elements of a list instead, entry by entry.
        picks: whether it shows, of its first operand, what an index says along an axis: the node's integer, on the
            first; or each entry of its second operand, along its attribute `axis`.
        composite: of an op that is written with others, `composite(*operands, *payload, **attributes)`: operands are
            expressions or parameters. It has no gradient of its own (see `composite`). Of a variadic op, and of each,
            it has as many operands as there are single ones and lists, and is written for ONE element of these: what
            reads one has a value for each element, until `ops.segments` make one value of all.
        unrolled: the same written with others, `unrolled(*operands, **attributes)`, put in its place only when
            kernels are made: of one whose gradient is better than what follows from that; of a variadic op, in a cell.
        gradient: the derivative's rule, written with the ops themselves: `gradient(g, out, *operands, *payload,
            **attributes)` gets the gradient of the result, the result, and operands that are expressions or
            parameters, and returns per operand an expression, or None where nothing flows (a lone result is of the
            first operand). It may return what broadcasts to the operand's shape or what the operand's shape
            broadcasts to: the sum over broadcast axes is taken for it. A variadic op's is for cells, where its list has
            a fixed length. `no_gradient` says that an op has none.
        chooses: whether its result is entries of its operands, and its gradient goes to those that are equal to it.
        samples: what it is tested on.
        body: of a cell, what it computes.
        call: of a foreign op, what is called with the arrays of a batch (see `foreign.Call`).
    """

    name: str
    shape: Callable[..., Shape]
    forward: Any = None
    kind: Kind = Kind.COMPUTE
    elementwise: bool = False
    variadic: bool = False
    singles: int = 0
    places: Callable[..., list[Any]] | None = None
    payload: int = 0
    scalar: str = ""
    reduction: str = ""
    segments: bool = False
    picks: bool = False
    composite: Callable[..., Any] | None = None
    unrolled: Callable[..., Any] | None = None
    gradient: Callable[..., Any] | None = None
    chooses: bool = False
    samples: tuple[Sample, ...] = ()
    body: Any = None
    call: Any = None


OPS: dict[str, Op] = {}
#: Ops that have steps of their own (see `product_steps`, `placed_steps`, `indexed_steps`, `largest_step` of
#: `runtime.compile`).
STEPS = ("matmul", "matmul_stack", "embed", "added_at", "last_at", "top_k")


def declare(op: Op) -> Op:
    """Enter an op in the table; an error if there is one of this name, or nothing says what it computes."""
    if op.name in OPS:
        raise EdBatchError(f"op {op.name!r} is declared twice")
    said = (op.forward, op.scalar, op.reduction, op.picks, op.composite, op.places, op.unrolled)
    if (not any(said) and op.name not in STEPS) or (op.variadic and op.composite is None):
        raise EdBatchError(f"op {op.name!r}: expected a scalar, a reduction, a composite or places")
    OPS[op.name] = op
    return op


def composite(
    name: str,
    shape: Callable[..., Shape],
    body: Callable[..., Any],
    samples: tuple[Sample, ...],
    payload: int = 0,
    flat: bool = False,
) -> Op:
    """Declare an op that is written with other ops, by its `body`, see `Op.composite`.

    It is one node of a graph, computed as its body is, and differentiated as that of a cell; in a cell it is what its
    body records. So it needs neither a kernel nor a gradient. What only keeps numbers in range, as the largest entry
    that a softmax subtracts, goes through `stop_gradient`. Through one that is `flat` no gradient flows: its result
    is an index, or another number that moves in jumps.
    """
    gradient = no_gradient if flat else None
    return declare(Op(name, shape, payload=payload, composite=body, gradient=gradient, samples=samples))


def gradient_of(op: Op, place: object) -> Callable[..., Any]:
    """The rule of an op's gradient; an error that names `place` if it has none."""
    if op.gradient is None:
        raise EdBatchError(f"{place}: op {op.name!r} has no gradient; give it one, or `no_gradient` if none flows")
    return op.gradient


def no_gradient(*_: Any, **attributes: Any) -> None:
    """The gradient of an op through which none flows."""


def expect(condition: bool, message: str) -> None:
    """Raise `EdBatchError` with what a shape rule expected; the caller adds the op and its operands."""
    if not condition:
        raise EdBatchError(message)
