"""A model for tests of replay, and functions of it beside what they are without the decorator."""

import numpy as np

import edbatch as eb


class Model:
    def __init__(self, dim=3, seed=0):
        self.model = eb.ParameterCollection(seed=seed, dtype="float64")
        self.W = self.model.add_parameters((dim, dim), name="W")
        self.table = self.model.add_lookup_parameters((9, dim), name="table")


def loss(model, words):
    h = eb.zeros(3)
    for word in words:
        h = eb.tanh(model.W @ h + eb.lookup(model.table, word))
    return eb.sum(h)


def total(numbers):
    return eb.sum([eb.scalar(float(number)) for number in numbers])


def value(function, *args, **graph):
    with eb.Graph(dtype="float64", **graph):
        y = function(*args)
    return y.value()


def same(plain, replayed, *calls, times=2, **graph):
    """Both give the same, each time."""
    for _ in range(times):
        for args in calls:
            np.testing.assert_array_equal(value(replayed, *args, **graph), value(plain, *args, **graph))
