"""Where the variables of a static subgraph lie, so that batched operations find their operands side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edbatch.memory.alignment import Demand
from edbatch.memory.batched_op import RESULT, BatchedOp, Variable, check_input, slot_name
from edbatch.memory.conflicts import BUDGET, choose
from edbatch.memory.layout_check import Reach, Verdict, verify

__all__ = ["RESULT", "BatchedOp", "Layout", "Reach", "Variable", "Verdict", "plan_layout", "verify"]


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
        cheapest: whether no layout moves fewer entries; False where the search was cut short.
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

    def explain(self) -> list[dict[str, str | int]]:
        """Rows of a table: every result and operand, how it is reached, entries copied, and what stopped it."""
        return [
            {
                "op": self.ops[verdict.op].name,
                "operand": slot_name(verdict.slot),
                "reach": verdict.reach.value,
                "moved": verdict.moved,
                "stopped by": why,
            }
            for verdict, why in zip(self.verdicts, self.stopped_by, strict=True)
        ]


def plan_layout(variables: Sequence[Variable], ops: Sequence[BatchedOp], budget: int = BUDGET) -> Layout:
    """Order variables so that batched operations copy as little as possible (the paper's section 3.2 and appendix B).

    An operand or a result needs no copy where its variables are adjacent and in the order of the batch, which is free,
    but one for the result and all operands; an operand that is one variable throughout is broadcast. Where not all can
    be met, those yield that move the fewest entries: the choice is the cheapest there is, unless the search
    runs out of its budget. An operand that repeats some of its variables, or mixes spaces, is always a gather.

    Args:
        variables: of the subgraph; operations name them by index.
        ops: the batches.
        budget: bounds the search where there are conflicts (see `conflicts.choose`).

    Raises:
        EdBatchError: a size is not positive, an index is out of range, an operand has another length than the
            result, or a result names a variable twice.

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
    check_input(variables, ops)
    demands, costs, names, reasons = [], [], [], {}
    for number, op in enumerate(ops):
        for slot, indices in op.slots():
            if len(set(indices)) == 1:
                continue
            spaces = sorted({variables[index].space for index in indices})
            repeated = sorted({index for index in indices if indices.count(index) > 1})
            if len(spaces) > 1:
                reasons[number, slot] = f"lies in several spaces: {', '.join(spaces)}"
            elif repeated:
                reasons[number, slot] = f"repeats {', '.join(variables[index].name for index in repeated)}"
            else:
                demands.append(Demand(number, indices))
                costs.append(sum(variables[index].size for index in indices))
                names.append((number, slot))
    choice = choose(demands, costs, budget)
    order = _by_space(variables, choice.order)
    offsets = _offsets(variables, order)
    batch_orders, verdicts = verify(variables, ops, offsets)
    for dropped, conflict in choice.dropped.items():
        others = [
            f"{ops[op].name} (op {op}) {slot_name(slot)}" for op, slot in (names[n] for n in conflict if n != dropped)
        ]
        reasons[names[dropped]] = f"conflicts with {', '.join(others)}"
    for verdict in verdicts:  # two orders of a batch may be worth the same
        reasons.setdefault((verdict.op, verdict.slot), "its batch runs in another order")
    stopped_by = [reasons[v.op, v.slot] if v.reach is Reach.GATHER else "" for v in verdicts]
    return Layout(
        tuple(variables),
        tuple(ops),
        tuple(order),
        tuple(offsets),
        tuple(batch_orders),
        tuple(verdicts),
        tuple(stopped_by),
        choice.cheapest,
    )


def _by_space(variables: Sequence[Variable], placed: list[int]) -> list[int]:
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
