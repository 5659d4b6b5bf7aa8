"""The passes that a cell's body goes through before it is compiled: each a function from body to body."""

from edbatch.graph.body import Body
from edbatch.graph.options import current_options
from edbatch.graph.passes.drop_dead import drop_dead
from edbatch.graph.passes.join_biases import join_biases
from edbatch.graph.passes.merge_equal import merge_equal
from edbatch.graph.passes.sink_views import sink_views
from edbatch.graph.passes.split_biases import split_biases
from edbatch.graph.passes.stack_products import stack_products


def simplify(body: Body) -> Body:
    """The same computation in fewer nodes, ready to be fused; `options(stack=False)` leaves parameters apart."""
    body = drop_dead(join_biases(merge_equal(body)))
    if current_options().stack:
        body = stack_products(body)
    return drop_dead(sink_views(split_biases(body)))
