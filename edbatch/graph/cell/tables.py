"""`cell.layout()` and `cell.explain()` as text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from weakref import ref

from edbatch.base.later import Later
from edbatch.errors import EdBatchError
from edbatch.graph.cell.compiled import Compiled, Row

tabulate = Later("tabulate")


class Table(str):
    """Text that an interactive session shows as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class Described:
    """What a cell can say of its traces.

    Attributes:
        name: of the cell.
        attribute: see `Cell`; with `_all`, under which an owner keeps its traces.
        traces: all traces of all owners.
    """

    name: str
    attribute: str
    traces: list[ref[Any]]

    def kept(self, owner: tuple[Any, ...]) -> dict[str, Any]:
        """Where the traces of an owner are kept."""
        raise NotImplementedError

    def layout(self, owner: Any = None) -> Table:
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
        traces = self.compiled(owner)
        return Table("\n\n".join(f"{_title(*trace)}\n{_table(trace[1].storage)}" for trace in traces))

    def explain(self, owner: Any = None) -> Table:
        """How every batch of the cell's body reaches its operands.

        "contiguous": side by side, in the order of the batch; "broadcast": one variable for the whole batch;
        "gathered": neither, with the bytes that a call would copy to run this as one batch, and what stopped it.
        Of what would be gathered, concatenations are copied; products and element-wise ops run one by one instead.
        So do products whose parameters are not stacked because they were exported (`Parameter.__dlpack__`): it names
        them.

        Args, returns and raises: as `layout`.
        """
        texts = []
        for name, compiled in self.compiled(owner):
            gap = compiled.batches - compiled.split - compiled.least
            quality = f", at most {gap} more than needed" if gap else ", no fewer are possible"
            split = f", and {compiled.split} more to copy less" if compiled.split else ""
            cheapest = "" if compiled.layout.cheapest else "; the layout need not be the best"
            alone = f"; not stacked, as another library holds it: {', '.join(compiled.alone)}" if compiled.alone else ""
            batches = f"{compiled.batches - compiled.split} batches{quality}{split}{cheapest}{alone}"
            head = f"{_title(name, compiled)}: {batches}"
            texts.append(f"{head}\n{_table(compiled.operands)}")
        return Table("\n\n".join(texts))

    def compiled(self, owner: Any = None) -> list[tuple[str, Compiled]]:
        """Name and body of every trace, see `layout`."""
        if owner is None:
            traces = [found for reference in self.traces if (found := reference()) is not None]
        else:
            traces = [found for found in [self.kept((owner,)).get(self.attribute + "_all")] if found]
        variants = [variant for one in traces for variants in list(one.values()) for variant in variants]
        types = dict.fromkeys(variant.entry.type for variant in variants)
        if not types:
            raise EdBatchError(f"cell {self.name} has not been traced yet; call it once, then ask for its layout")
        return [(type.name, type.op.compiled) for type in types]


def _title(name: str, compiled: Compiled) -> str:
    return name + (f" without {', '.join(compiled.without)}" if compiled.without else "")


def _table(rows: Iterable[Row]) -> str:
    return str(tabulate.tabulate(rows, headers="keys"))
