"""The passes that a cell's body goes through before it is compiled: each a function from body to body."""

from edbatch.graph.body import Body
from edbatch.graph.passes.drop_dead import drop_dead
from edbatch.graph.passes.join_biases import join_biases
from edbatch.graph.passes.merge_equal import merge_equal
from edbatch.graph.passes.sink_views import sink_views
from edbatch.graph.passes.split_biases import split_biases


def simplify(body: Body) -> Body:
    """The same computation in fewer nodes, ready to be fused."""
    for simpler in (merge_equal, join_biases, drop_dead, split_biases, sink_views, drop_dead):
        body = simpler(body)
    return body
