"""The passes that a cell's body goes through before it is compiled: each a function from body to body."""

from edbatch.graph.cell.body import Body
from edbatch.graph.cell.passes.open_composites import body_over_lists, open_affines, open_composites, open_lists
from edbatch.graph.cell.passes.rows_for_steps import rows_for_steps, with_own_outputs
from edbatch.graph.cell.passes.simplify import drop_dead, merge_equal
from edbatch.graph.cell.passes.sink_views import sink_views

__all__ = [
    "body_over_lists",
    "drop_dead",
    "open_composites",
    "open_lists",
    "prepare_for_batching",
    "prepare_for_kernels",
    "rows_for_steps",
    "with_own_outputs",
]


def prepare_for_batching(body: Body, plain: bool, named: bool = False) -> Body:
    """The same computation in fewer and simpler nodes.

    Args:
        plain: leave out the passes that only make it faster.
        named: whether users hold what the body returns, and may ask for its gradient: then what reads a result goes on
            reading it, and nothing else does.
    """
    return drop_dead(open_affines(body if plain else merge_equal(body, named)))


def prepare_for_kernels(body: Body, plain: bool = False, named: bool = False) -> Body:
    """After batches have become nodes: composites opened, slices where the kernels want them.

    Args:
        body, plain, named: as of `prepare_for_batching`.
    """
    body = open_composites(body)
    return drop_dead(body if plain else sink_views(body, named))
