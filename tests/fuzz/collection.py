"""The parameters of a model, and what trains them."""

import numpy as np

from tests.fuzz.rounding import rounded
from tests.fuzz.tape import Parameter


class ParameterCollection:
    """The parameters of a model."""

    def __init__(self, seed=0, dtype="float32"):
        self.parameters = []

    def add_parameters(self, shape, name=None, init=None):
        self.parameters.append(Parameter(np.broadcast_to(init, shape)))
        return self.parameters[-1]

    def add_lookup_parameters(self, shape, name=None, init=None):
        table = self.add_parameters(shape, name, init)
        table.is_table = True
        return table

    def __iter__(self):
        return iter(self.parameters)

    def zero_grad(self):
        for x in self:
            x.zero_grad()


class SGD:
    """p -= lr g, and the gradients are forgotten."""

    def __init__(self, model, lr):
        self.model, self.lr = model, lr

    def update(self):
        if not any(x.has_grad for x in self.model):
            raise ValueError("no gradient has come")
        for x in self.model:
            x.set_value(x.data)
            x.data = rounded(x.data - rounded(self.lr * x.gradient))
        self.model.zero_grad()
