"""The graphs that are open in `with` blocks, of which the innermost is recorded into."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edbatch.base.blocks import Blocks

if TYPE_CHECKING:
    from edbatch.graph.columns import Columns

graphs: Blocks[Columns] = Blocks("edbatch_graph")
