"""Where the variables of a static subgraph lie, so that batched operations find their operands side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from edbatch.memory.layout.alignment import Alignment, Demand
from edbatch.memory.layout.batched_op import BatchedOp, Variable, slot_name
from edbatch.memory.layout.check import Reach, Verdict, verify

NAMED = 8  # of what is not met, so much has its conflict looked for, which takes milliseconds


@dataclass(frozen=True)
class Layout:
    """A planned and verified layout.

    Attributes:
        variables: as given.
        ops: as given.
        order: variable indices in memory order, space by space.
        offsets: per variable, where it starts in its space.
        batch_orders: per batch, the order in which it runs: entry p is the number of the operation at place p.
        verdicts: what `verify` says of every result and operand.
        stopped_by: per verdict, what stands against it; empty unless it is a gather.
        cheapest: whether no layout moves fewer entries for sure: all is met that any layout can.
    """

    variables: tuple[Variable, ...]
    ops: tuple[BatchedOp, ...]
    order: tuple[int, ...]
    offsets: tuple[int, ...]
    batch_orders: tuple[tuple[int, ...], ...]
    verdicts: tuple[Verdict, ...]
    stopped_by: tuple[str, ...]
    cheapest: bool

    @property
    def moved(self) -> int:
        """Entries copied per run of the subgraph."""
        return sum(verdict.moved for verdict in self.verdicts)


def plan_layout(variables: Sequence[Variable], ops: Sequence[BatchedOp]) -> Layout:
    """Order variables so that batched operations copy as little as possible (the paper's section 3.2 and appendix B).

    An operand or a result needs no copy where its variables are adjacent and in the order of the batch, which is free,
    but one for the result and all operands; an operand that is one variable throughout is broadcast. Where not all can
    be met, those that move the most entries (times the `cost` of their operation) come first, and each is met that
    still fits. An operand that repeats some of its variables, or mixes spaces, is always a gather.

    Args:
        variables: of the subgraph; operations name them by index.
        ops: the batches.

    Example:
        The paper's figure 3: x4, x5 = f(x1, x3; x2, x1), then x6, x7, x8 = g(x4, x5, x3).

        >>> variables = [Variable(f"x{i + 1}", 1) for i in range(8)]
        >>> f = BatchedOp("f", (3, 4), ((0, 2), (1, 0)))
        >>> g = BatchedOp("g", (5, 6, 7), ((3, 4, 2),))
        >>> layout = plan_layout(variables, [f, g])
        >>> layout.moved, [variables[index].name for index in layout.order]
        (0, ['x2', 'x1', 'x3', 'x4', 'x5', 'x8', 'x6', 'x7'])
        >>> layout.batch_orders
        ((0, 1), (2, 0, 1))
    """
    wanted = _wanted(variables, ops)
    dearest = sorted(range(len(wanted.demands)), key=lambda number: -wanted.costs[number])
    demands = [wanted.demands[number] for number in dearest]
    nothing = _anchored(variables, ops, demands)
    met, left = nothing.joined([[demand] for demand in demands])
    for count, number in enumerate(left):
        why = "what moves more"
        if count < NAMED:
            fitting = [at for at in range(number + 1) if at == number or at not in left]
            guilty = nothing.conflict([demands[at] for at in fitting], len(fitting) - 1)
            at_fault = [wanted.names[dearest[fitting[at]]] for at in guilty]
            shown = [f"{ops[op].name} (op {op}) {slot_name(slot)}" for op, slot in at_fault]
            why = ", ".join(shown) or "the order of its batch"
        wanted.reasons[wanted.names[dearest[number]]] = f"conflicts with {why}"
    order = _by_space(variables, _forward(met.order(), len(variables)))
    offsets = _offsets(variables, order)
    batch_orders, verdicts = verify(variables, ops, offsets)
    otherwise = "its batch runs in another order"
    stopped_by = [wanted.reasons.get((v.op, v.slot), otherwise) if v.reach is Reach.GATHER else "" for v in verdicts]
    return Layout(
        tuple(variables), tuple(ops), tuple(order), tuple(offsets), tuple(batch_orders), tuple(verdicts),
        tuple(stopped_by), not left,
    )  # fmt: skip


def clashing(variables: Sequence[Variable], ops: Sequence[BatchedOp]) -> list[int]:
    """Operations that gather whatever the layout, or do not fit together with dearer and larger ones.

    A quick look, for who can do without some of them.

    Example:
        >>> variables = [Variable(name, 1) for name in "abcdef"]
        >>> clashing(variables, [BatchedOp("f", (2, 3), ((0, 1),)), BatchedOp("g", (4, 5), ((1, 0),))])
        []
        >>> clashing(variables, [BatchedOp("f", (2, 3), ((0, 1),)), BatchedOp("g", (3, 2), ((0, 1),))])
        [1]
        >>> clashing(variables, [BatchedOp("f", (2, 3, 4), ((0, 1, 0),))])
        [0]
    """
    wanted = _wanted(variables, ops)
    demands, found = wanted.demands, {number for number, _ in wanted.reasons}
    order = sorted(range(len(ops)), key=lambda number: (-ops[number].cost, -len(ops[number].result), number))
    groups = [[demand for demand in demands if demand.op == number] for number in order]
    _, left = _anchored(variables, ops, demands).joined(groups)
    return sorted(found.union(order[number] for number in left))


class _Wanted(NamedTuple):
    """What operations want of a layout: demands, what each costs and which (operation, slot) it is of; and why other
    slots are gathers whatever the layout."""

    demands: list[Demand]
    costs: list[int]
    names: list[tuple[int, int]]
    reasons: dict[tuple[int, int], str]


def _wanted(variables: Sequence[Variable], ops: Sequence[BatchedOp]) -> _Wanted:
    wanted = _Wanted([], [], [], {})
    for number, op in enumerate(ops):
        for slot, indices in op.slots():
            if len(set(indices)) == 1:
                continue
            spaces = sorted({variables[index].space for index in indices})
            repeated = sorted({index for index in indices if indices.count(index) > 1})
            if len(spaces) > 1:
                wanted.reasons[number, slot] = f"lies in several spaces: {', '.join(spaces)}"
            elif repeated:
                wanted.reasons[number, slot] = f"repeats {', '.join(variables[index].name for index in repeated)}"
            else:
                wanted.demands.append(Demand(number, indices))
                wanted.costs.append(op.cost * sum(variables[index].size for index in indices))
                wanted.names.append((number, slot))
    return wanted


def _anchored(variables: Sequence[Variable], ops: Sequence[BatchedOp], demands: Sequence[Demand]) -> Alignment:
    """The alignment of nothing but ordered operations, with further variables, which stand in a row.

    A layout may always be mirrored, so an order is known only up to its direction; that of these anchors tells it.
    """
    first = len(variables)
    ordered = [number for number, op in enumerate(ops) if op.ordered and len(op.result) > 1]
    longest = max((len(ops[number].result) for number in ordered), default=0)
    chain = [Demand(len(ops) + at, (first + at, first + at + 1)) for at in range(longest - 1)]
    chain += [Demand(number, tuple(range(first, first + len(ops[number].result)))) for number in ordered]
    met = Alignment(variable for demand in (*demands, *chain) for variable in demand.variables).extended(chain)
    assert met is not None  # anchors agree with each other
    return met


def _forward(order: Sequence[int], first_anchor: int) -> list[int]:
    """The order without anchors, mirrored if they run backwards."""
    anchors = [index for index in order if index >= first_anchor]
    placed = [index for index in order if index < first_anchor]
    return placed[::-1] if anchors != sorted(anchors) else placed


def _by_space(variables: Sequence[Variable], placed: Sequence[int]) -> list[int]:
    """All variables, one space after the other; those that no operation places come last."""
    rest = sorted(set(range(len(variables))).difference(placed))
    spaces = list(dict.fromkeys(variable.space for variable in variables))
    return sorted([*placed, *rest], key=lambda index: spaces.index(variables[index].space))


def _offsets(variables: Sequence[Variable], order: Sequence[int]) -> list[int]:
    offsets = [0] * len(variables)
    ends: dict[str, int] = {}
    for index in order:
        space = variables[index].space
        offsets[index] = ends.get(space, 0)
        ends[space] = offsets[index] + variables[index].size
    return offsets
