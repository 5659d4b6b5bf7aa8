"""Element-wise ops, reductions, broadcasts and views of any axes in one cell: kernels compute all, as NumPy."""

import numpy as np
import pytest

import edbatch as eb

SHAPES = [(2, 3, 4), (3, 4), (4,), (2, 1, 4), (12,), (4, 3), ()]


def program(seed, lib, xs):
    """A few values of operands: the same of expressions and of arrays."""
    random = np.random.default_rng(seed)
    values = list(xs)

    def chosen():
        return values[int(random.integers(max(0, len(values) - 6), len(values)))]

    for _ in range(int(random.integers(3, 12))):
        x = chosen()
        kind, ndim = int(random.integers(8)), len(x.shape)
        axes = tuple(np.flatnonzero(random.random(ndim) < 0.5).tolist())
        if kind == 0:
            y = lib.tanh(x)
        elif kind == 1:
            y = lib.sum(x, axes or None, keepdims=bool(random.integers(2)))
        elif kind == 2:
            y = getattr(lib, ("max", "min")[int(random.integers(2))])(x, axes or None, keepdims=True)
        elif kind == 3 and ndim:
            y = lib.transpose(x, random.permutation(ndim).tolist())
        elif kind == 4 and ndim:
            y = x[tuple(slice(None, None, int(random.choice([1, 2, -1]))) for _ in range(ndim))]
        elif kind == 5 and ndim > 1:
            y = lib.reshape(x, (x.shape[0], -1) if random.integers(2) else (-1,))
        elif kind == 6:
            y = x - lib.max(x, axes or None, keepdims=True)
        else:
            y = chosen()
            try:
                np.broadcast_shapes(x.shape, y.shape)
            except ValueError:
                y = 0.5
            y = x * 0.5 + y
        values.append(y)
    return values[len(xs) :]


def operands(seed):
    random = np.random.default_rng(seed)
    shapes = [SHAPES[int(at)] for at in random.integers(len(SHAPES), size=2)]
    return [random.normal(size=shape) for shape in shapes]


def run(seed, dtype, **options):
    """Values, and gradients of the operands and of a parameter, of three calls."""
    given = operands(seed)
    model = eb.ParameterCollection(dtype=dtype)
    W = model.add_parameters((3, 4), init=np.linspace(-1, 1, 12).reshape(3, 4))
    cell = eb.cell(lambda *xs: program(seed, eb, [W * 1, *xs]))
    with eb.options(**options), eb.Graph(policy="none", dtype=dtype):
        calls, xs = [], []
        for call in range(3):
            xs.append([eb.input(x + 0.25 * call) for x in given])
            calls.append(cell(*xs[-1]))
        loss = eb.sum([eb.sum(eb.square(value)) for values in calls for value in values] + [eb.sum(W * W)])
        loss.backward()
        values = eb.forward([value for values in calls for value in values])
        gradients = [x.gradient() for of_call in xs for x in of_call]
    return values, [*gradients, W.grad()]


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 60))])
def test_values_are_numpys_and_gradients_those_of_float64_op_by_op(seed):
    values, gradients = run(seed, "float32")
    for call in range(3):
        given = [np.linspace(-1, 1, 12).reshape(3, 4), *(x + 0.25 * call for x in operands(seed))]
        want = program(seed, np, given)
        for value, right in zip(values[call * len(want) : (call + 1) * len(want)], want, strict=True):
            np.testing.assert_allclose(value, right, rtol=2e-5, atol=2e-5)
    for got, want in zip(gradients, run(seed, "float64", cells=False)[1], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4 * max(1, np.abs(want).max()))
