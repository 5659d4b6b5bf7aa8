"""Arrays wherever they are."""

import numpy as np


def on_host(array):
    """The same numbers as a NumPy array; arrays of a GPU have a method for that."""
    return array.get() if hasattr(array, "get") else array


def beside(parameter, values):
    """Numbers as an array of a parameter's dtype, where the parameter is."""
    return parameter.device.backend.from_host(np.array(values, parameter.spec.dtype), "C")
