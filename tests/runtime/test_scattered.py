"""Operands whose rows have entries that do not lie side by side: read in place, and added to, on every device."""

import itertools

import numpy as np
import pytest

import edbatch as eb
from edbatch.devices import device

VIEWS = {
    "transposed": (lambda x: x.T, (2, 3)),
    "reversed": (lambda x: eb.flip(x, 0), (3, 2)),
    "a column": (lambda x: x[:, 1], (3, 2)),
    "every other": (lambda x: x[::2], (5,)),
    "inner": (lambda x: x[:, 1:3], (2, 4)),
    "three axes": (lambda x: eb.transpose(x, (2, 0, 1))[::-1], (2, 3, 2)),
    "one by one": (lambda x: x.T, (1, 1)),
}
# Which of the nodes that are viewed the batch's nodes read.
READ = {
    "one for all": [2, 2, 2, 2],
    "at a distance": [0, 2, 4],
    "some twice": [3, 0, 3, 4, 0, 3],
}


@pytest.fixture(params=["cpu", "cuda"])
def where(request, cuda):
    return device(request.param)


def recorded(view, shape, reads):
    """Nodes that read views of nodes; the values and gradients of the latter."""
    random = np.random.default_rng(5)
    xs = [eb.input(random.normal(size=shape)) for _ in range(5)]
    ys = [eb.tanh(x) for x in xs]
    zs = [eb.square(x) for x in xs]
    eb.forward(ys + zs)
    found = [eb.exp(view(ys[at])) for at in reads]
    # Of two arenas' windows, and in lists.
    found += [eb.sin(view((ys, zs)[at % 2][at])) for at in reads]
    found += [eb.sum([view(ys[at]) for at in reads]), eb.maximum([view(zs[at]) for at in (1, *reads)])]
    loss = eb.sum([eb.sum(x * float(at + 1)) for at, x in enumerate(found)])
    loss.backward()
    return [x.value() for x in (*found, loss)], [x.gradient() for x in (*xs, *ys, *zs)]


@pytest.mark.parametrize("view", VIEWS)
def test_views_are_as_their_copies(where, view):
    """A copy that a cell makes of the value is read side by side."""
    look, shape = VIEWS[view]
    copied = eb.cell(lambda x: look(x) * 1.0)
    for read, dtype in zip(READ, itertools.cycle(["float32", "float64"]), strict=False):
        results = []
        for through in (look, copied):
            with where, eb.Graph(policy="sufficient", dtype=dtype):
                results.append(recorded(through, shape, READ[read]))
        unit = 1e-5 if dtype == "float32" else 1e-13
        for got, want in zip(*(values + gradients for values, gradients in results), strict=True):
            assert got.dtype == dtype
            np.testing.assert_allclose(got, want, rtol=unit, atol=unit)
