import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.cell.passes.drop_dead import drop_dead
from edbatch.graph.cell.passes.merge_batches import merge_batches
from edbatch.runtime.compile.cell import find_batches
from tests.graph.bodies import compute, names, trace

D = 3


def parameters(n, shape=(D, D)):
    model = eb.ParameterCollection(seed=0, dtype="float64")
    return [
        model.add_parameters(shape, name=f"p{i}", init=np.random.default_rng(i).normal(size=shape)) for i in range(n)
    ]


def fewest(body):
    return find_batches(body, plain=False).batches


def check(function, *shapes, batches=fewest):
    """Merged and as traced, a body computes the same; the merged body."""
    body = trace(function, *shapes)
    merged = drop_dead(merge_batches(body, batches(body)))
    values = [np.random.default_rng(at).normal(size=shape) for at, shape in enumerate(shapes)]
    for got, want in zip(compute(merged, *values), compute(body, *values), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)
    return merged


def test_products_are_stacked_in_the_order_of_the_batch():
    a, b, c = parameters(3)
    merged = check(lambda x: eb.exp(a @ x) * (b @ x) + c @ x, (D,), batches=lambda body: [[3, 1, 5], [2], [4], [6]])
    assert names(merged) == ["matmul", "exp", "multiply", "add"]
    assert a.stack.parts == (b.spec, a.spec, c.spec)


def test_equal_nodes_of_single_numbers_stay_apart():
    """They are the same row of a batch: as one node they would be one number, and not as many as there are nodes."""
    merged = check(lambda x: eb.exp(x) * eb.exp(x), (1,), batches=lambda body: [[1, 2], [3]])
    assert names(merged) == ["exp", "exp", "multiply"]


def test_element_wise_batches_over_a_stack_are_one_node():
    a, b, c = parameters(3)
    u, v, w = parameters(3, (D,))

    def gates(x):
        first, second, third = (eb.sigmoid(W @ x + bias) for W, bias in ((a, u), (b, v), (c, w)))
        return first * second + third

    merged = check(gates, (D,))
    assert names(merged) == ["matmul", "add", "sigmoid", "multiply", "add"]
    assert u.stack is v.stack is not None


def test_a_concatenation_of_what_lies_side_by_side_is_no_node():
    a, b = parameters(2)
    merged = check(lambda x: 2 * eb.concatenate([eb.tanh(a @ x), eb.tanh(b @ x)]), (D,))
    assert names(merged) == ["matmul", "tanh", "multiply"]


def test_a_batch_reads_a_concatenation_of_its_operands():
    a, b = parameters(2)

    def function(x, y):
        e = eb.concatenate([x, y])
        z = x + y
        r, s = eb.tanh(a @ z), eb.tanh(b @ z)
        return eb.sum(e) * eb.concatenate([r * x, s * y])

    merged = check(function, (D,), (D,))
    assert names(merged).count("concatenate") == names(merged).count("tanh") == 1
    assert names(merged).count("multiply") == 2


def test_parts_in_another_order_are_copied():
    a, b = parameters(2)
    together = [eb.tanh, eb.exp]

    def function(x):
        p, q = a @ x, b @ x
        return [2 * eb.concatenate([op(p), op(q)][::step]) for op, step in zip(together, (1, -1), strict=True)]

    merged = check(function, (D,))
    assert names(merged).count("concatenate") == 1


def test_slices_reshapes_and_stacks_of_merged_nodes():
    a, b = parameters(2, (4, D))

    def function(x):
        p, q = eb.exp(a @ x), eb.exp(b @ x)
        rows = eb.stack([p, q])
        return p[1:3] + q[::2], eb.reshape(q, (2, 2)).T + 1, eb.exp(rows), eb.sum(rows)

    merged = check(function, (D,))
    assert "stack" not in names(merged)


def test_of_what_a_part_is_read_stays_one_value():
    """Gradients flow into all that it is made of."""
    a, b = parameters(2, (4, D))
    merged = check(lambda x: eb.sum(eb.stack([eb.exp(a @ x), eb.exp(b @ x)])[1]), (D,))
    assert names(merged).count("stack") == 1


def test_what_is_returned_is_not_merged():
    a, b = parameters(2)
    merged = check(lambda x: (eb.tanh(a @ x), eb.tanh(b @ x)), (D,))
    assert names(merged) == ["matmul", "tanh", "tanh"]
    assert all(value.view is None for value in merged.outputs)


@pytest.mark.parametrize("shape", [(), (1,), (2, 2)])
def test_numbers_are_shared_and_matrices_stay_apart(shape):
    check(lambda x, y: 0.5 * eb.tanh(x * 0.5) + 0.5 * eb.tanh(y * 0.5), shape, shape)


def test_constants_beside_slices():
    (a,) = parameters(1, (2 * D, D))

    def function(x):
        u, v = eb.split(a @ x, 2)
        return (1 - eb.sigmoid(u)) * (1 - eb.sigmoid(v))

    merged = check(function, (D,))
    assert names(merged) == ["matmul", "sigmoid", "subtract", "multiply"]


def test_chains_of_views_too_long_for_one_view_are_copied():
    a, b = parameters(2, (4, D))

    def function(x):
        p, q = eb.exp(a @ x), eb.exp(b @ x)
        for _ in range(8):
            q = q[::-1]
        return p + q

    merged = check(function, (D,))
    assert "index" in names(merged)
