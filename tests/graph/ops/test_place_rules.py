"""The shape rules of ops that put operands side by side, against where they put them."""

import pytest

from edbatch.errors import EdBatchError
from edbatch.graph.op import OPS, Op
from edbatch.graph.ops.place import CONCATENATE, STACK
from edbatch.graph.shape_rules import checked_result, compare_places

CASES = [(op, sample.shapes, sample.attributes) for op in OPS.values() if op.places for sample in op.samples]
CASES += [(STACK, ((3, 2),) * n, {"axis": axis}) for n in (1, 2, 40) for axis in (0, 1, 2)]
CASES += [(CONCATENATE, ((3, n, 2), (3, 1, 2)), {"axis": 1}) for n in (1, 2, 7)]


@pytest.mark.parametrize(("op", "shapes", "attributes"), CASES)
def test_what_is_not_compared_when_a_type_is_made(op, shapes, attributes):
    compare_places(op, shapes, attributes, checked_result(op, shapes, attributes))


def test_rules_that_others_write_are_compared():
    op = Op("side_by_side", lambda *shapes, axis: (7,), places=CONCATENATE.places)
    with pytest.raises(EdBatchError, match="not the operands side by side"):
        checked_result(op, ((2,), (3,)), {"axis": 0})
    assert checked_result(op, ((2,), (5,)), {"axis": 0}) == (7,)
