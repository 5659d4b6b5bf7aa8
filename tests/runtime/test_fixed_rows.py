"""Products in cells with a vector that is the same for all calls: a constant, an array, a parameter."""

import numpy as np
import pytest

import edbatch as eb
from tests.arrays import on_host

torch = pytest.importorskip("torch")
K, M = 4, 3
ROWS = np.linspace(-1, 1, K).astype(np.float32)


def of_constant(W, V, b, p, x):
    return W @ eb.ones(K) + x[:M]


def of_zeros(W, V, b, p, x):
    return W @ eb.zeros(K) + x[:M]


def of_array(W, V, b, p, x):
    return W @ eb.input(ROWS) + x[:M]


def from_the_right(W, V, b, p, x):
    return eb.ones(M) @ W + x


def with_bias(W, V, b, p, x):
    return eb.affine(W, eb.ones(K), b) + x[:M]


def with_a_bias_that_changes(W, V, b, p, x):
    return eb.affine(W, eb.input(ROWS), x[:M])


def of_parameter(W, V, b, p, x):
    return W @ p + x[:M]


def of_parameter_node(W, V, b, p, x):
    return W @ eb.parameter(p) + x[:M]


def of_function_of_constant(W, V, b, p, x):
    return W @ eb.tanh(eb.ones(K) * 2.0) + x[:M]


def of_part_of_constant(W, V, b, p, x):
    return V @ eb.concatenate([eb.ones(2), x])[:5] + x[0]


def of_slice_of_array(W, V, b, p, x):
    return W @ eb.input(np.arange(9.0, dtype=np.float32))[3:7] + x[:M]


def alone(W, V, b, p, x):
    return W @ eb.ones(K), x


def matrix_of_calls(W, V, b, p, x):
    return eb.stack([x, 2 * x, x * x]) @ p + eb.parameter(W) @ x


def matrix_and_constant(W, V, b, p, x):
    return eb.stack([x, 2 * x, x * x]) @ eb.ones(K) + eb.ones(M) @ eb.stack([x[:M], x[1:], x[:M]])


BODIES = [
    of_constant, of_zeros, of_array, from_the_right, with_bias, with_a_bias_that_changes, of_parameter,
    of_parameter_node, of_function_of_constant, of_part_of_constant, of_slice_of_array, alone, matrix_of_calls,
    matrix_and_constant,
]  # fmt: skip


def oracle(body, weights, xs):
    """Values and gradients of the same body in PyTorch, float64."""
    W, V, b, p = (torch.tensor(w, dtype=torch.float64, requires_grad=True) for w in weights)
    rows = torch.tensor(xs, dtype=torch.float64, requires_grad=True)

    class Like:
        ones = staticmethod(lambda n: torch.ones(n, dtype=torch.float64))
        zeros = staticmethod(lambda n: torch.zeros(n, dtype=torch.float64))
        input = staticmethod(lambda a: torch.tensor(a, dtype=torch.float64))
        parameter = staticmethod(lambda p: p)
        tanh, stack, concatenate = staticmethod(torch.tanh), staticmethod(torch.stack), staticmethod(torch.cat)
        affine = staticmethod(lambda W, x, b: W @ x + b)

    scope = dict(body.__globals__) | {"eb": Like}
    same = type(body)(body.__code__, scope)
    found = [same(W, V, b, p, x) for x in rows]
    flat = [torch.cat([part.reshape(-1) for part in (y if isinstance(y, tuple) else (y,))]) for y in found]
    loss = sum((y * y).sum() for y in flat)
    loss.backward()
    zero = [torch.zeros_like(w) if w.grad is None else w.grad for w in (W, V, b, p)]
    return np.array([y.detach().numpy() for y in flat]), [*(g.numpy() for g in zero), rows.grad.numpy()]


@pytest.mark.parametrize("calls", [1, 7])
@pytest.mark.parametrize("cells", [True, False])
@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_values_and_gradients(body, cells, calls):
    random = np.random.default_rng(0)
    shapes = {"W": (M, K), "V": (M, 5), "b": (M,), "p": (K,)}
    weights = [random.standard_normal(shape).astype(np.float32) for shape in shapes.values()]
    xs = random.standard_normal((calls, K)).astype(np.float32)
    model = eb.ParameterCollection()
    given = [model.add_parameters(w.shape, name=name, init=w) for name, w in zip(shapes, weights, strict=True)]
    cell = eb.cell(lambda x: body(*given, x))
    with eb.options(cells=cells), eb.Graph(policy="none" if not cells else None):
        inputs = [eb.input(x) for x in xs]
        found = [cell(x) for x in inputs]
        flat = [eb.concatenate(list(y)) if isinstance(y, tuple) else y for y in found]
        loss = eb.sum([eb.sum(y * y) for y in flat])
    loss.backward()
    values, gradients = oracle(body, weights, xs)
    np.testing.assert_allclose(np.array([y.value() for y in flat]), values, rtol=2e-5, atol=2e-6)
    got = [*(on_host(w.grad()) for w in given), np.array([x.gradient() for x in inputs])]
    for name, a, b in zip([*shapes, "x"], got, gradients, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5, err_msg=name)
