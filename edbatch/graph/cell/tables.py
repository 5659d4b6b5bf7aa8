"""What is known of a cell after compilation, `cell.layout()` and `cell.explain()`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from edbatch.base.lazy import LazyModule
from edbatch.errors import EdBatchError
from edbatch.graph.cell.body import Body

Row = dict[str, str | int]


@dataclass(frozen=True)
class Compiled:
    """What `Columns.compile` makes of a body.

    Args:
        body, splittable: what to run; the same, to be split around a recurrence.
        layout: the planned one, with its variables and batches (a `memory.layout.Layout`).
        storage, operands: rows of `cell.layout()` and `cell.explain()`.
        batches, split, least: how many there are; of these, because larger ones would have copied an operand; and what
            the number of the others is known not to fall below.
        without: what was switched off; see `Options.without`.
        alone: parameters that were not stacked because another library holds their arrays.
        seconds: of compilation, by step; kernels are compiled when they run first.
    """

    body: Body
    splittable: Body
    layout: Any = None
    storage: tuple[Row, ...] = ()
    operands: tuple[Row, ...] = ()
    batches: int = 0
    split: int = 0
    least: int = 0
    without: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)


if TYPE_CHECKING:
    from edbatch.graph.cell.cell import Cell

tabulate = LazyModule("tabulate")


class Table(str):
    """Text that an interactive session shows as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def layout(cell: Cell, owner: Any = None) -> Table:
    """Where the variables of the cell lie: in the row of a call, and where its parameters are stacked.

    `print(tree.compose.layout())` shows every trace there is, one per tuple of argument shapes, of every owner;
    `tree.compose.layout(tree)` those of one.

    Args:
        owner: of a method: the object whose traces are meant.

    Returns:
        A text: for each trace a table of its variables in memory order, with place, size and bytes (of one call).

    Raises:
        EdBatchError: the cell has not been called yet, and so not been traced.
    """
    traces = compiled_traces(cell, owner)
    return Table("\n\n".join(f"{_title(*trace)}\n{_table(trace[1].storage)}" for trace in traces))


def explain(cell: Cell, owner: Any = None) -> Table:
    """How every batch of the cell's body reaches its operands.

    "contiguous": side by side, in the order of the batch; "broadcast": one variable for the whole batch;
    "gathered": neither, with the bytes that a call would copy to run this as one batch, and what stopped it.
    Of what would be gathered, concatenations are copied; products and element-wise ops run one by one instead.
    So do products whose parameters are not stacked because they were exported (`Parameter.__dlpack__`): it names
    them.

    Args, returns and raises: as `layout`.
    """
    texts = []
    for name, compiled in compiled_traces(cell, owner):
        gap = compiled.batches - compiled.split - compiled.least
        quality = f", at most {gap} more than needed" if gap else ", no fewer are possible"
        split = f", and {compiled.split} more to copy less" if compiled.split else ""
        cheapest = "" if compiled.layout.cheapest else "; the layout need not be the best"
        alone = f"; not stacked, as another library holds it: {', '.join(compiled.alone)}" if compiled.alone else ""
        batches = f"{compiled.batches - compiled.split} batches{quality}{split}{cheapest}{alone}"
        head = f"{_title(name, compiled)}: {batches}"
        texts.append(f"{head}\n{_table(compiled.operands)}")
    return Table("\n\n".join(texts))


def compiled_traces(cell: Cell, owner: Any = None) -> list[tuple[str, Compiled]]:
    """Name and body of every trace of an owner, or of all."""
    if owner is None:
        traces = [found for reference in cell.traces if (found := reference()) is not None]
    else:
        traces = [found for found in [cell.kept((owner,)).get(cell.attribute + "_all")] if found]
    types = dict.fromkeys(one.type for of in traces for several in list(of.values()) for one in several)
    if not types:
        raise EdBatchError(f"cell {cell.name} has not been traced yet; call it once, then ask for its layout")
    return [(type.name, type.op.compiled) for type in types]  # type: ignore[attr-defined]


def _title(name: str, compiled: Compiled) -> str:
    return name + (f" without {', '.join(compiled.without)}" if compiled.without else "")


def _table(rows: Iterable[Row]) -> str:
    return str(tabulate.tabulate(rows, headers="keys"))
