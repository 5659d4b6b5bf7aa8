"""Where the variables of a static subgraph lie, so that batched operations find their operands side by side.

Stands alone: `layout` plans; `batched_op` says of what; `alignment` finds what can be met, with a PQ tree (`pq_tree`);
`check` verifies what was planned.
"""

from edbatch.memory.layout.batched_op import RESULT, BatchedOp, Variable
from edbatch.memory.layout.check import Reach, Verdict, verify
from edbatch.memory.layout.layout import Layout, clashing, plan_layout

__all__ = [
    "RESULT",
    "BatchedOp",
    "Layout",
    "Reach",
    "Variable",
    "Verdict",
    "clashing",
    "plan_layout",
    "verify",
]
