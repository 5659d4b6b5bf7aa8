"""Ops over lists, as users call them: all lengths are one type, and what does not fit is refused."""

import numpy as np
import pytest

import edbatch as eb

torch = pytest.importorskip("torch")

LENGTHS = [1, 2, 5, 2, 9, 30]


@pytest.mark.parametrize(
    ("how", "dtype", "far"),
    [("one node", "float32", 1e4), ("its parts", "float32", 1.0), ("in a cell", "float64", 1e4)],
)
def test_scores_of_any_size(dtype, far, how):
    """Scores up to 1e4 and more, of both signs; dots, softmax and weighted_sum are what attention is made of."""

    def parts(query, *both):
        keys, values = both[: len(both) // 2], both[len(both) // 2 :]
        return eb.weighted_sum(eb.softmax([score * 0.5 for score in eb.dots(query, keys)]), values)

    def whole(query, *both):
        return eb.attention(query, both[: len(both) // 2], both[len(both) // 2 :])

    function = {"one node": whole, "its parts": parts, "in a cell": eb.cell(whole)}[how]
    random = np.random.default_rng(1)
    given = [[random.normal(size=4).astype(dtype) for _ in range(1 + 2 * n)] for n in LENGTHS]
    for xs in given:
        xs[0] *= far
    with eb.Graph(policy="sufficient", dtype=dtype) as graph:
        operands = [[eb.input(x) for x in xs] for xs in given]
        ys = [function(*xs) for xs in operands]
        eb.sum([eb.sum(eb.square(y)) for y in ys]).backward()
        if how == "one node":
            assert graph.report().batches == 4
    tolerance = 2e-4 if dtype == "float32" else 1e-9
    for xs, y, arrays in zip(operands, ys, given, strict=True):
        tensors = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in arrays]
        n = len(tensors) // 2
        keys, values = torch.stack(tensors[1 : 1 + n]), torch.stack(tensors[1 + n :])
        want = (keys @ tensors[0] * 0.5).softmax(0) @ values
        want.square().sum().backward()
        np.testing.assert_allclose(y.value(), want.detach(), rtol=tolerance, atol=tolerance)
        for x, tensor in zip(xs, tensors, strict=True):
            largest = max(1.0, float(tensor.grad.abs().max()))
            np.testing.assert_allclose(x.gradient(), tensor.grad, rtol=tolerance * 10, atol=tolerance * largest)


def test_operands_of_any_kind():
    """Numbers, arrays, parameters and views among expressions; generators."""
    model = eb.ParameterCollection(dtype="float64")
    p = model.add_parameters(2, init=[1.0, 2.0])
    with eb.Graph(dtype="float64"):
        x = eb.input([[1.0, 0.0], [0.0, 1.0]])
        y = eb.attention(p, (key for key in [x[0], p, np.ones(2)]), [x.T[1], np.ones(2), p], scale=False)
        z = eb.weighted_sum([2, eb.scalar(3.0)], [p, x[0]])
        eb.sum([eb.sum(y), eb.sum(z)]).backward()
    scores = np.array([1.0, 5.0, 3.0])
    weights = np.exp(scores - 5) / np.exp(scores - 5).sum()
    np.testing.assert_allclose(y.value(), weights @ [[0, 1], [1, 1], [1, 2]])
    np.testing.assert_allclose(z.value(), [5, 4])
    assert (p.grad() != 0).all()
