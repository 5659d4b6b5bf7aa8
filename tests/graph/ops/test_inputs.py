"""What enters a graph."""

import numpy as np

import edbatch as eb


def test_a_scalar_is_no_constant_of_equal_value():
    """The gradient of a scalar is its own, whatever numbers of that value the program has."""
    with eb.Graph(dtype="float64"):
        x, y = eb.scalar(2), eb.scalar(2)
        loss = x * 2 * y * y + 2 * eb.square(x)
    loss.backward()
    np.testing.assert_allclose([x.gradient(), y.gradient()], [8 + 8, 16])
