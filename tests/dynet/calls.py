"""Calls of DyNet's functions: real DyNet's values, dimensions and gradients of each are in `calls.json`.

Runs with both: nothing here is newer than Python 3.6.
"""

import numpy as np

ARRAYS = {
    "v": np.array([0.5, -1.25, 2.0]),
    "w": np.array([1.5, 0.25, -0.75]),
    "u": np.array([0.3, 0.6]),
    "s": np.array([1.7]),
    "M": np.array([[0.1, -0.4, 0.9], [1.3, 0.2, -0.6]]),
    "N": np.array([[0.7, 0.5, -0.3], [-0.2, 1.1, 0.4]]),
    "C": np.array([[0.5], [-1.0], [1.5]]),
    "R": np.array([[0.2, 0.4, -0.8]]),
    "Q": np.array([[2.0, 0.3, -0.1], [0.4, 1.5, 0.2], [-0.3, 0.1, 1.8]]),
    "T": np.sin(np.arange(24.0)).reshape(2, 3, 4),
    "I": np.sin(np.arange(40.0) * 1.7).reshape(4, 5, 2),
    "F": np.cos(np.arange(24.0) * 0.9).reshape(2, 3, 2, 2),
    "f": np.array([0.1, -0.2]),
    "D": np.cos(np.arange(12.0)).reshape(2, 3, 2),
    "g": np.sin(np.arange(12.0)) / 2,
    "A": np.sin(np.arange(36.0) * 0.7).reshape(12, 3),
}
TABLES = {"L": np.sin(np.arange(15.0) * 1.3).reshape(5, 3), "K": np.cos(np.arange(10.0)).reshape(5, 2)}


def expressions(dy, model=None):
    """The parameters by name, and what calls may use; the graph is new."""
    model = model or dy.ParameterCollection()
    parameters = {name: model.add_parameters(array.shape, init=array) for name, array in sorted(ARRAYS.items())}
    for name, array in sorted(TABLES.items()):
        parameters[name] = model.lookup_parameters_from_numpy(array)
    dy.renew_cg()
    scope = dict(parameters, dy=dy, np=np)
    scope["B"] = dy.lookup_batch(parameters["L"], [1, 3])
    scope["O"] = dy.lookup_batch(parameters["L"], [2])
    scope["b"] = dy.pick_batch(scope["B"], [0, 2])
    scope["BM"] = parameters["M"] * dy.concatenate_cols([scope["B"], parameters["v"], parameters["w"]])
    return parameters, scope


def asked(dy, call):
    """Dimensions, value, and the gradients of Σ cos(i) x[i] by parameter, rounded; or the error's class."""
    parameters, scope = expressions(dy)
    x = eval(call, scope)
    shape, count = x.dim()
    value = np.asarray(x.npvalue())
    weights = np.cos(np.arange(value.size)).reshape(value.shape)
    finite = np.isfinite(value).all()
    found = {"dim": [list(shape), count], "value": numbers(value)}
    if finite:
        weighted = dy.cmult(x, dy.inputTensor(weights, batched=count > 1))
        loss = dy.sum_batches(dy.sum_elems(weighted))
        loss.value()
        loss.backward()
        gradients = {name: numbers(one.grad_as_array()) for name, one in sorted(parameters.items())}
        found["gradients"] = {name: one for name, one in gradients.items() if any(one)}
    return found


def numbers(array):
    """All entries, rounded to six digits, what is not finite as text."""
    return [float(format(x, ".6g")) if np.isfinite(x) else str(x) for x in np.asarray(array).reshape(-1).tolist()]
