"""Places of what a body returns."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.cell.body import Value, joined, slice_of, step_to
from edbatch.graph.spec import spec_of
from edbatch.graph.views import NODE_BITS, VIEWS, columns_of
from tests.graph.bodies import trace

FLOAT = np.dtype("float32")


def test_neighbours_in_a_vector_and_in_a_row_are_one():
    body = trace(lambda x, y: x + 1.0, (6,), (6,))

    def x(begin, end):
        return slice_of(body, 0, begin, end)

    assert x(0, 6) == Value(0)
    assert joined(body, [(3, x(0, 2)), (5, x(2, 3)), (6, x(3, 6)), (9, Value(1))]) == [(3, Value(0)), (9, Value(1))]
    assert joined(body, [(0, x(1, 2)), (1, x(2, 4)), (3, x(5, 6))]) == [(0, x(1, 4)), (3, x(5, 6))]
    apart = [(0, x(0, 2)), (3, x(2, 4)), (5, slice_of(body, 1, 4, 6)), (7, x(0, 2))]
    assert joined(body, apart) == apart
    stopped = trace(lambda x: (x[0:3], eb.stop_gradient(x[3:6])), (6,))
    places = list(zip((0, 3), stopped.outputs, strict=True))
    assert joined(stopped, places) == places


@pytest.mark.parametrize("shape", [(), (1,), (2,), (2, 1)])
def test_where_a_part_of_a_row_begins(shape):
    view = VIEWS[step_to(spec_of((5,), FLOAT), 3, spec_of(shape, FLOAT)) >> NODE_BITS]
    assert columns_of(view) == (3, np.prod(shape))
