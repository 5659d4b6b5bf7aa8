import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.cell.stacking import stacked
from edbatch.training.arrays import sent
from edbatch.training.rule import Rule
from edbatch.training.storage import Storage, by_storage, is_whole

pytestmark = pytest.mark.cpu

# Entries take a step, and two slots count it.
COUNT = Rule(("a", "b"), ("scale", "by", "one"), "p = p + (scale * g + by); a = a + one; b = b + one")


def apply(storage, parameter, numbers):
    """Update all that has a gradient of a parameter by these constants of the rule."""
    call, constants = storage.call(parameter), sent(parameter, numbers)
    call.give_constants(constants)
    rows, _held = call.give_gradient()
    parameter.device.backend.prepared([call.of_kernel])([rows])


@pytest.mark.parametrize("shape", [(), (4,), (3, 2), (1, 5), (2, 3, 4)])
def test_everything_that_a_parameter_has_is_updated_in_place(shape):
    W = eb.ParameterCollection(dtype="float64").add_parameters(shape, init=1.0)
    storage = Storage(W, COUNT)
    gradient = W.accumulator()[0]
    gradient[...] = given = np.arange(W.spec.size, dtype=float).reshape(shape)
    before = W.array
    apply(storage, W, (2.0, 0.5, 1.0))
    assert W.array is before
    np.testing.assert_array_equal(W.value(), 1.5 + 2 * given)
    assert not gradient.any()  # of all but tables they are cleared
    for slot in range(2):
        assert storage.slot(slot, W).shape == shape
        np.testing.assert_array_equal(storage.slot(slot, W), np.ones(shape))
        assert np.shares_memory(storage.slot(slot, W), storage.slots[slot])


def test_of_a_table_the_rows_that_have_a_gradient():
    table = eb.ParameterCollection().add_lookup_parameters((5, 2, 3), init=0.0)
    table.add_rows(np.array([3, 1, 3]), np.ones((3, 2, 3), np.float32))
    storage = Storage(table, COUNT)
    apply(storage, table, (1.0, 0.0, 1.0))
    np.testing.assert_array_equal(table.value()[:, 0, 0], [0, 1, 0, 2, 0])
    np.testing.assert_array_equal(storage.slot(0, table)[:, 1, 2], [0, 1, 0, 1, 0])


def test_a_part_of_a_stack():
    model = eb.ParameterCollection(dtype="float64")
    a, b, c = (model.add_parameters((n, 3), init=0.0) for n in (2, 1, 3))
    stack = stacked([p.spec for p in (a, b, c)]).parameter()
    stack.accumulator()[0][...] = np.arange(18.0).reshape(6, 3)
    storage = Storage(stack, COUNT)
    storage.slot(1, c)[...] = np.arange(9).reshape(3, 3)
    apply(storage, c, (1.0, 0.0, 1.0))
    assert not a.value().any()
    assert not b.value().any()
    np.testing.assert_array_equal(c.value(), np.arange(9.0, 18.0).reshape(3, 3))
    np.testing.assert_array_equal(storage.slot(1, c), 1 + np.arange(9).reshape(3, 3))
    assert not storage.slot(0, a).any()
    apply(storage, stack, (1.0, 0.0, 1.0))
    np.testing.assert_array_equal(a.value(), np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(c.value(), np.arange(9.0, 18.0).reshape(3, 3))  # its gradient was cleared
    np.testing.assert_array_equal(storage.slot(0, c), np.full((3, 3), 2))
    np.testing.assert_array_equal(storage.slot(0, stack)[2:3], storage.slot(0, b))


def test_parameters_by_storage():
    model = eb.ParameterCollection()
    a, b, c = (model.add_parameters((2, 3)) for _ in range(3))
    stack = stacked([a.spec, c.spec]).parameter()
    groups = by_storage(model)
    assert groups == {stack: [a, c], b: [b]}
    assert all(is_whole(owner, members) for owner, members in groups.items())
    assert not is_whole(stack, [c])
