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


def test_several_rows_are_an_index_of_the_table():
    table = eb.ParameterCollection().add_lookup_parameters((3, 2), name="E")
    with eb.Graph(policy="none"):
        with pytest.raises(eb.EdBatchError, match=r"got list; several rows, as a matrix, are E\[\[1, 2\]\]"):
            eb.lookup(table, [1, 2])
        assert table[[1, 2]].shape == (2, 2)


def test_integers_beyond_64_bits_are_refused():
    with eb.Graph():
        for value in ([1, 2**70], [[-(2**70)]], 2**64):
            with pytest.raises(eb.EdBatchError, match="integers beyond 64 bits"):
                eb.input(value)
        assert eb.input([2**64 - 1]).value() == np.float32(2**64)
