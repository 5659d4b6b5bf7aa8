"""The graphs that are open in `with` blocks, of which the innermost is recorded into."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edbatch.base.context_stack import ContextStack

if TYPE_CHECKING:
    from edbatch.graph.columns import Columns

graphs: ContextStack[Columns] = ContextStack("edbatch_graph")


def refuse_in_trace(what: str) -> None:
    """Refuse to read a value where something is recorded that is kept."""
    graph = graphs.top.get().value
    if graph is not None:
        graph.refuse_reading(what)
