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


def numeric_gradients(model, loss):
    """By name, the gradients of the parameters of a float64 model; `loss()` is a number."""
    found = {}
    for parameter in model:
        value = parameter.value()

        def changed(x, parameter=parameter):
            parameter.set_value(x)
            return loss()

        found[parameter.name] = numeric(changed, value)
        parameter.set_value(value)
    return found


def compare(model, wants, rtol=1e-6, atol=1e-8):
    """Compare the gradients that parameters have."""
    for parameter in model:
        np.testing.assert_allclose(
            on_host(parameter.grad()), wants[parameter.name], rtol=rtol, atol=atol, err_msg=parameter.name
        )


def check_parameters(model, loss, rtol=1e-6, atol=1e-8):
    """Compare the gradients that the parameters of a float64 model have with those of `loss()`, a number."""
    compare(model, numeric_gradients(model, loss), rtol, atol)
