"""Checking gradients: central finite differences, in float64."""

import numpy as np


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


def check_parameters(model, loss, rtol=1e-6, atol=1e-8):
    """Compare the gradients that the parameters of a float64 model have with those of `loss()`, a number."""
    for parameter in model:
        value = parameter.value()

        def changed(x, parameter=parameter):
            parameter.set_value(x)
            return loss()

        want = numeric(changed, value)
        parameter.set_value(value)
        np.testing.assert_allclose(parameter.grad(), want, rtol=rtol, atol=atol, err_msg=parameter.name)
