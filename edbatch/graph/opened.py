"""The graphs that are open in `with` blocks, of which the innermost is recorded into."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edbatch.base.blocks import Blocks
from edbatch.errors import EdBatchError

if TYPE_CHECKING:
    from edbatch.graph.columns import Columns

graphs: Blocks[Columns] = Blocks("edbatch_graph")


def refuse_in_trace(what: str) -> None:
    """Refuse to read a value where something is recorded that is kept.

    Raises:
        EdBatchError: that is so.
    """
    graph = graphs.top.get().value
    if graph is not None and graph.keeps:
        raise EdBatchError(
            f"{graph.keeps} reads a value, by {what}; what it records is kept, and so would be what is there now. Use "
            "the parameter or expression itself (eb.stop_gradient stops its gradient), or pass the value as an argument"
        )
