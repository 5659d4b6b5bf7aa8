"""Cells of recurrent networks in NumPy, and the ways in which a model must give the same values."""

import numpy as np
import pytest

import edbatch as eb

WAYS = {
    "batched": ("sufficient", {}),
    "learned": (None, {}),
    "agenda": ("agenda", {}),
    "one at a time": ("none", {}),
    "cells off": ("sufficient", {"cells": False}),
    "cells off, one at a time": ("none", {"cells": False}),
    "plain": ("sufficient", {"compile": "plain"}),
}
every_way = pytest.mark.parametrize("way", WAYS)


def forward(way, build, dtype="float64"):
    """Values of the expressions that `build()` returns, and the report."""
    policy, options = WAYS[way]
    with eb.options(**options), eb.Graph(policy=policy, dtype=dtype) as graph:
        values = eb.forward(build())
    return values, graph.report()


def randomized(model, scale=0.6):
    """Its parameters by name, now away from zero, biases too."""
    random = np.random.default_rng(5)
    for parameter in model:
        parameter.set_value(random.normal(0, scale, parameter.shape))
    return {parameter.name: parameter.value() for parameter in model}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    return np.exp(x) / np.exp(x).sum()


def cross_entropy(scores, label):
    return -np.log(softmax(scores)[label])


def lstm(p, name, x, h, c):
    """One step of the LSTM whose parameters begin with `name`."""
    i, f, o, u = np.split(p[f"{name}.W"] @ x + p[f"{name}.U"] @ h + p[f"{name}.b"], 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(u)
    return sigmoid(o) * np.tanh(c), c


def gru(p, name, x, h):
    z, r, n = np.split(p[f"{name}.W"] @ x + p[f"{name}.b"], 3)
    u_z, u_r, u_n = np.split(p[f"{name}.U"] @ h, 3)
    z = sigmoid(z + u_z)
    return ((1 - z) * np.tanh(n + sigmoid(r + u_r) * (u_n + p[f"{name}.b_n"])) + z * h,)


def lstm_outputs(p, name, xs):
    """The outputs of an LSTM that starts at zero."""
    dim = p[f"{name}.U"].shape[1]
    h, c = np.zeros(dim), np.zeros(dim)
    outputs = []
    for x in xs:
        h, c = lstm(p, name, x, h, c)
        outputs.append(h)
    return outputs
