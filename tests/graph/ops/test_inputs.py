"""What enters a graph."""

import numpy as np
import pytest

import edbatch as eb


def test_a_scalar_is_no_constant_of_equal_value():
    """The gradient of a scalar is its own, whatever numbers of that value the program has."""
    with eb.Graph(dtype="float64"):
        x, y = eb.scalar(2), eb.scalar(2)
        loss = x * 2 * y * y + 2 * eb.square(x)
    loss.backward()
    np.testing.assert_allclose([x.gradient(), y.gradient()], [8 + 8, 16])


TABLE = np.arange(24.0).reshape(3, 4, 2)


@pytest.mark.parametrize(
    "key",
    [(0, 1), (2, -1, 1), (-1, slice(1, 3)), (1, ..., 0), (1, [0, 2]), (np.int64(1), None), (1,), [0, 1]],
)
def test_an_index_of_a_table_is_that_of_an_array(key):
    table = eb.ParameterCollection().add_lookup_parameters(TABLE.shape, init=TABLE)
    with eb.Graph(policy="sufficient"):
        part = table[key]
        loss = eb.sum(eb.square(part))
    loss.backward()
    np.testing.assert_array_equal(part.value(), TABLE[key])
    want = np.zeros_like(TABLE)
    want[key] = 2 * TABLE[key]
    np.testing.assert_array_equal(table.grad(), want)


def test_an_index_of_a_table_begins_in_a_cell_with_a_number():
    table = eb.ParameterCollection().add_lookup_parameters(TABLE.shape, init=TABLE)

    @eb.cell
    def entry(row: int):
        return table[row, 1]

    with eb.Graph():
        np.testing.assert_array_equal(entry(2).value(), TABLE[2, 1])
