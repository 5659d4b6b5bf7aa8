"""`cell.layout()` and `cell.explain()` as text."""

from __future__ import annotations

from collections.abc import Iterable

from edbatch.graph.compiled import Compiled


class Table(str):
    """Text that an interactive session shows as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def layout_table(traces: Iterable[tuple[str, Compiled]]) -> Table:
    """Where the variables of each trace lie; a trace has a name."""
    from tabulate import tabulate

    return Table("\n\n".join(f"{_title(*trace)}\n{tabulate(trace[1].storage, headers='keys')}" for trace in traces))


def explain_table(traces: Iterable[tuple[str, Compiled]]) -> Table:
    """How each trace's batches reach their operands."""
    from tabulate import tabulate

    texts = []
    for name, compiled in traces:
        gap = compiled.batches - compiled.split - compiled.least
        quality = f", at most {gap} more than needed" if gap else ", no fewer are possible"
        split = f", and {compiled.split} more to copy less" if compiled.split else ""
        cheapest = "" if compiled.layout.cheapest else "; the layout need not be the best"
        head = f"{_title(name, compiled)}: {compiled.batches - compiled.split} batches{quality}{split}{cheapest}"
        texts.append(f"{head}\n{tabulate(compiled.operands, headers='keys')}")
    return Table("\n\n".join(texts))


def _title(name: str, compiled: Compiled) -> str:
    return name + (f" without {', '.join(compiled.without)}" if compiled.without else "")
