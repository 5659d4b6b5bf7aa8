"""Opening affines, joining biases, parameters as values: the same numbers, and the nodes that are wanted."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.cell.passes.drop_dead import drop_dead
from edbatch.graph.cell.passes.join_biases import join_biases
from edbatch.graph.cell.passes.open_affines import open_affines
from edbatch.graph.cell.passes.parameters_as_values import parameters_as_values
from edbatch.graph.cell.passes.sink_views import sink_views
from tests.graph.bodies import compute, names, trace


def setup(dtype):
    model = eb.ParameterCollection(seed=0, dtype=dtype)
    return model.add_parameters((4, 3), name="W"), model.add_parameters(4, name="b", init=[1, 2, 3, 4])


def same(body, other, dtype="float64"):
    x = np.random.default_rng(0).normal(size=3)
    for got, want in zip(compute(other, x), compute(body, x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12 if dtype == "float64" else 1e-5)


def test_opened_and_joined_again():
    W, b = setup("float64")
    body = trace(lambda x: eb.exp(eb.affine(W, x, b)), (3,))
    opened = open_affines(body)
    assert names(opened) == ["matmul", "add", "exp"]
    joined = drop_dead(join_biases(opened, False))
    assert names(joined) == ["affine", "exp"]
    same(body, opened)
    same(body, joined)


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (lambda z: eb.tanh(z), ["matmul", "add", "tanh"]),
        (lambda z: z, ["affine"]),  # returned
        (lambda z: eb.softmax(z), ["affine", "softmax"]),
        (lambda z: eb.softmax(z) * eb.tanh(z), ["affine", "softmax", "tanh", "multiply"]),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_where_element_wise_ops_alone_read_it_the_sum_stays(function, wanted, dtype):
    W, b = setup(dtype)
    body = trace(lambda x: function(W @ x + b), (3,), dtype=dtype)
    joined = drop_dead(join_biases(body, True))
    assert names(joined) == wanted
    same(body, joined, dtype)
    assert "affine" in names(drop_dead(join_biases(body, False)))


def test_slices_sink_through_parameters():
    W, b = setup("float32")

    def function(x):
        p, q = eb.split(W @ x + b, 2)
        return eb.tanh(p) * eb.exp(q)

    body = trace(function, (3,), dtype="float32")
    values = parameters_as_values(body)
    assert [node.type.op.name for node in values.nodes].count("parameter") == 1
    sunk = drop_dead(sink_views(values))
    assert {node.type.out.shape for node in sunk.nodes if node.type.op.name == "add"} == {(2,)}
    same(body, values, "float32")
    same(body, sunk, "float32")


@pytest.mark.parametrize("policy", ["none", "sufficient"])
@pytest.mark.parametrize("used", [lambda y: y, lambda y: eb.tanh(y), lambda y: eb.sum(y) * 2])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize(
    ("left", "right"), [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((4, 3), (3, 2)), ((1, 3), (3,)), ((3,), (3, 1))]
)
@pytest.mark.parametrize("parameter", ["left", "right"])
def test_products_of_all_shapes_and_a_bias(left, right, parameter, first, used, policy):
    """A vector times a vector is one, too: w @ x + b of a logistic unit."""
    model = eb.ParameterCollection(seed=0, dtype="float64")
    W = model.add_parameters(left if parameter == "left" else right, name="W")
    b = model.add_parameters((np.ones(left) @ np.ones(right)).shape, name="b", init="normal")

    def unit(x):
        product = W @ x if parameter == "left" else x @ W
        return used(b + product if first else product + b)

    def run(function):
        random = np.random.default_rng(0)
        model.zero_grad()
        with eb.Graph(policy=policy, dtype="float64"):
            xs = [eb.input(random.normal(size=right if parameter == "left" else left)) for _ in range(3)]
            loss = eb.sum([eb.sum(eb.square(function(x))) for x in xs])
        loss.backward()
        return [loss.value(), W.grad(), b.grad(), *(x.gradient() for x in xs)]

    for found, expected in zip(run(eb.cell(unit)), run(unit), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
