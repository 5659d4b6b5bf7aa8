"""Checking gradients: central finite differences, in float64."""

import numpy as np

from tests.arrays import on_host


def numeric(function, x, step=1e-6):
    """The gradient of a function of one array that returns a number."""
    x = np.array(x, np.float64)
    found = np.zeros(x.shape)
    for index in np.ndindex(x.shape):
        middle = x[index]
        x[index] = middle + step
        above = function(x)
        x[index] = middle - step
        found[index] = (above - function(x)) / (2 * step)
        x[index] = middle
    return found


def compare(model, wants, rtol=1e-6, atol=1e-8):
    """Compare the gradients that parameters have."""
    for parameter in model:
        np.testing.assert_allclose(
            on_host(parameter.grad()), wants[parameter.name], rtol=rtol, atol=atol, err_msg=parameter.name
        )
