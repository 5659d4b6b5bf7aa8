"""Both dtypes run in the same compiled loops, there and back, and side by side in one table of types."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.devices import device

DIM = 6
DTYPES = ["float32", "float64"]


class Model:
    """Look-ups, an LSTM's cells, reductions of lists, operands of several types."""

    def __init__(self, dtype, where):
        self.dtype, self.where = dtype, where
        with where:
            self.model = eb.ParameterCollection(seed=4, dtype=dtype)
            self.lstm = eb.models.LSTM(self.model, DIM, DIM)
            self.table = self.model.add_lookup_parameters((5, DIM), name="table")
            self.W = self.model.add_parameters((3, DIM), name="W")
        self.attend = eb.cell(lambda h, m: eb.sigmoid(self.W @ (h * m) + 1.0))
        self.word = eb.cell(self._word)

    def _word(self, word: int):
        return eb.tanh(eb.lookup(self.table, word))

    def step(self, policy, options):
        """Value, and gradients of all parameters, of a training step."""
        self.model.zero_grad()
        with self.where, eb.options(**options), eb.Graph(policy=policy, dtype=self.dtype):
            found = []
            for length in (1, 4, 2, 5):
                h, c = eb.zeros(DIM), eb.zeros(DIM)
                hs = []
                for at in range(length):
                    h, c = self.lstm.step(self.word((at + length) % 5), h, c)
                    hs.append(h)
                found.append(self.attend(h, eb.logsumexp([eb.mean(hs), eb.max(hs), eb.min(hs), h, h])))
            total = eb.sum(found)
        total.backward(np.array([1.0, -2.0, 0.5]))
        return [total.value(), *(parameter.grad().copy() for parameter in self.model if parameter is not self.table)]


@pytest.mark.cpu
@pytest.mark.parametrize("policy", ["sufficient", "depth", "agenda", "none"])
def test_both_dtypes_give_the_same(policy):
    """In turns, so that types of both are in one table; and as without cells, fused kernels, and what is saved."""
    models = [Model(dtype, device("cpu")) for dtype in DTYPES]
    for _ in range(2):
        single, double = (model.step(policy, {}) for model in models)
        for mine, theirs in zip(single, double, strict=True):
            assert (mine.dtype, theirs.dtype) == (np.float32, np.float64)
            np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)
    for options in ({"cells": False}, {"recompute": True}):
        for mine, theirs in zip(models[1].step(policy, options), double, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-13)


def test_an_emulated_gpu_gives_the_same(cuda):
    cpu, gpu = (Model("float64", where) for where in (device("cpu"), cuda))
    for mine, theirs in zip(gpu.step("sufficient", {}), cpu.step("sufficient", {}), strict=True):
        np.testing.assert_allclose(np.asarray(cuda.backend.to_host(mine)), theirs, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("dtype", DTYPES)
def test_layouts_that_other_graphs_have_made(dtype):
    """Of both dtypes, after the graph has run, and before it goes back."""
    with eb.Graph(policy="sufficient", dtype=dtype):
        xs = [eb.input(np.full(DIM, float(at))) for at in range(3)]
        total = eb.sum([x * x for x in xs])
    total.value()
    for other in DTYPES:
        with eb.Graph(policy="sufficient", dtype=other):
            eb.forward([eb.tanh(eb.zeros((2, 31))), eb.mean([eb.zeros(37), eb.ones(37)])])
    total.backward(np.ones(DIM))
    np.testing.assert_array_equal([x.gradient() for x in xs], [np.full(DIM, 2.0 * at) for at in range(3)])


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_have_the_digits_of_the_graph(dtype):
    tenth = np.dtype(dtype).type(0.1)
    with eb.Graph(dtype=dtype):
        one = eb.scalar(1.0)
        found = [one * 0.1, eb.cell(lambda x: x * 0.1)(one), (eb.array([one, one]) * 0.1)[1]]
    assert [x.value() for x in found] == [tenth] * 3
