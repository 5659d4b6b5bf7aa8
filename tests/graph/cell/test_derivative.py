"""Derivatives of bodies: what flows where it was read from, what is saved, what is left to one product."""

from dataclasses import replace

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.cell.body import Value
from edbatch.graph.cell.derivative import Given, derivative, worth_saving
from edbatch.graph.op import Kind
from edbatch.runtime.compile.derivatives import body_of_type
from tests.gradients import check_parameters
from tests.graph.bodies import compute

DIM = 6


def overlapping(x):
    return eb.sum(x[:4] * x[2:]) + eb.sum(x[1:3]) + eb.sum(x[1:3] * x[3])


def gaps(x):
    return eb.sum(eb.square(x[1:3])) + eb.sum(x[4:5] * x[1:2])


def split_of_a_split(x):
    a, b = eb.split(x, 2)
    (c, d), e = eb.split(a, [1, 2]), b[::-1]
    return eb.sum(c * d) + eb.sum(e * b * a)


def matrices(x):
    y = eb.reshape(x, (2, 3))
    return eb.sum(y.T @ y) + eb.sum(y[:, 1] * y[0, :2]) + eb.sum(eb.flip(y, 1)[1] * eb.transpose(y)[2, 0])


def single_entries(x):
    return x[0] * x[5] + eb.pick(x, 2) * x[2] + eb.stack([x[0], x[1]])[1]


def whole_and_parts(x):
    return eb.sum(x * x) * x[2] + eb.sum(eb.concatenate([x[3:], x, x[:1]]) ** 3)


def of_lists(x):
    a, b, c = eb.split(x, 3)
    lists = [eb.sum, eb.mean, eb.maximum, eb.minimum, eb.logsumexp]
    return eb.sum([eb.sum(reduce([a, b, c, b]) * a) for reduce in lists])


def stopped(x):
    return eb.sum(eb.stop_gradient(x)[:3] * x[3:] + eb.stop_gradient(x * x)[:3])


FUNCTIONS = [
    overlapping, gaps, split_of_a_split, matrices, single_entries, whole_and_parts, of_lists, stopped,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("as_cell", [True, False])
def test_gradients_flow_to_where_was_read(function, as_cell):
    """In the middle of a cell, of a product with a parameter; and op by op."""
    random = np.random.default_rng(1)
    model = eb.ParameterCollection(dtype="float64")
    W = model.add_parameters((DIM, 2), init=random.standard_normal((DIM, 2)))
    inputs = random.standard_normal((3, 2))
    fixed = {}

    def body(x):
        return function(W @ x)

    body = eb.cell(body) if as_cell else body

    def loss():
        with eb.Graph(policy="sufficient", dtype="float64"):
            if function is stopped and fixed:  # finite differences see no stop: what is stopped stays as it was
                return sum(
                    eb.sum(eb.input(y[:3]) * (W @ eb.input(x))[3:]) for y, x in zip(fixed["y"], inputs, strict=True)
                )
            return eb.sum([body(eb.input(x)) for x in inputs])

    for options in ({}, {"recompute": True}):
        fixed.clear()
        model.zero_grad()
        with eb.options(**options):
            loss().backward()
        fixed["y"] = [W.value() @ x for x in inputs]
        check_parameters(model, lambda: loss().value(), rtol=1e-6, atol=1e-7)


@pytest.fixture
def gated():
    model = eb.ParameterCollection(seed=0)
    W, b = model.add_parameters((8, 4), name="W"), model.add_parameters(8, name="b")

    @eb.cell
    def step(x, h):
        z, n = eb.split(eb.affine(W, eb.concatenate([x, h]), b), 2)
        return eb.sigmoid(z) * eb.tanh(n), h

    with eb.Graph() as graph:
        h = step(eb.ones(2), eb.ones(2))[0]
    return model, graph.type_of(h)


def test_what_a_derivative_reads(gated):
    _, type = gated
    body, row, steps = body_of_type(type)
    saved = worth_saving(body, row, steps)
    assert [body.nodes[number].type.op.name for number in saved] == ["concatenate", "matmul"]
    found = derivative(body, row, steps, [False, True], saved)
    # The product's results are there, and with them the arguments are not read.
    assert {kind for kind, _ in found.given} == {Given.SAVED, Given.GRADIENT}
    assert found.operands[0] is None
    assert found.operands[1].spec.shape == (2,)
    again = derivative(body, row, steps, [True, True])
    assert {kind for kind, _ in again.given} == {Given.OPERAND, Given.GRADIENT}
    assert sum(node.type.op.name == "matmul" for node in again.body.nodes) == 2  # forward once more, and back


def test_a_product_is_left_to_the_end(gated):
    """No node makes a matrix for each call; what the forward run saved is read there."""
    model, type = gated
    body, row, steps = body_of_type(type)
    found = derivative(body, row, steps, [True, True], worth_saving(body, row, steps))
    assert all(len(node.type.out.shape) < 2 for node in found.body.nodes)
    terms = {term.parameter: term for term in found.terms}
    gradient, x = terms[model["W"].spec].parts
    assert gradient.spec.shape == (8,)
    assert isinstance(x, Value)
    assert body.nodes[x.node].type.op.name == "concatenate"
    assert terms[model["b"].spec].parts == (gradient,)
    # Gradients of gates are computed side by side, and the row is no longer than need be.
    assert found.width == 8 + 2 + 2


def test_nothing_is_asked_for():
    with eb.Graph() as graph:
        type = graph.type_of(eb.tanh(eb.input([1.0])))
    found = derivative(*body_of_type(type), [False])
    assert found.body.outputs == ()
    assert found.operands == (None,)
    assert found.terms == ()


@pytest.mark.parametrize("turned", [False, True])
def test_a_parameter_that_is_read_whole_and_by_entries(turned):
    model = eb.ParameterCollection(seed=0)
    p = model.add_parameters((4,))

    @eb.cell
    def both(x):
        w = eb.parameter(p)
        whole, entry = (eb.sum(w * x), eb.pick(w, 3)) if turned else (eb.pick(w, 3), eb.sum(w * x))
        return whole, entry, w

    with eb.Graph():
        first, second, w = both(eb.ones(4))
        (first + second + eb.sum(w)).backward()
    assert p.grad().tolist() == [2, 2, 2, 3]


def largest_of_a_list(x, y):
    a = eb.softmax(x) * eb.exp(y)
    return a * 2, eb.max([a, y * 0.1, a * 0.5])


def smallest_of_a_list(x, y):
    a = eb.exp(x)
    return eb.min([a, eb.square(y)]), eb.sum(a)


def the_larger(x, y):
    a = eb.tanh(x * y)
    return eb.maximum(a, eb.sin(y)), eb.minimum(a, x)


def largest_entry(x, y):
    a = eb.exp(x) * eb.sigmoid(y)
    return eb.max(a), eb.min(a, keepdims=True), a


def equal_to_the_largest(x, y):
    a = eb.softmax(x * y)
    m = eb.max(a)
    return m, eb.sum(eb.where(eb.equal(a, m), x * y, 0)), eb.sum(eb.where(a >= m, y * y, y))


def by_index(x, y):
    a = eb.softmax(x) * y
    return eb.max(a), eb.gather(y * x, eb.reshape(eb.argmax(a), (1,)), axis=0)


def pooled(x, y):
    a = eb.reshape(eb.exp(x) * eb.tanh(y), (1, 6))
    return eb.max_pool1d(a, 3, 1, 1), eb.sum(eb.k_max_pool(a[0], 2))


COMPARING = [
    largest_of_a_list, smallest_of_a_list, the_larger, largest_entry, equal_to_the_largest, by_index, pooled,
]  # fmt: skip


def values_given(found, body, saved, operands, gradient, moved):
    """What a derivative is given; `moved`: all that a kernel has computed is one bit more than it would be here."""

    def computed(values):
        arrays = compute(replace(body, outputs=tuple(values)), *operands)
        if moved:
            # What is an operand's entry, a truth value or an index is exact.
            exact = [np.isin(a, operands) | (a == np.round(a)) for a in arrays]
            arrays = [np.where(same, a, np.nextafter(a, np.inf)) for same, a in zip(exact, arrays, strict=True)]
        return arrays

    result = np.concatenate([np.ravel(array) for array in computed(dict.fromkeys(body.outputs))])
    kept = dict(zip(saved, computed(Value(number) for number in saved), strict=True))
    of_kind = {
        Given.OPERAND: operands,
        Given.RESULT: [result.reshape(gradient.shape)],
        Given.SAVED: kept,
        Given.GRADIENT: [gradient],
    }
    return [of_kind[kind][number] for kind, number in found.given]


@pytest.mark.parametrize("function", COMPARING)
@pytest.mark.parametrize("share", [None, 0, 1])
def test_what_is_compared_is_given_or_computed_again_as_one(function, share):
    """Another kernel's results differ in the last bit: what was equal must not become different by that."""
    with eb.options(split=False), eb.Graph(dtype="float64") as graph:
        first = eb.cell(function)(eb.ones(6), eb.ones(6))[0]
        body, row, steps = body_of_type(graph.type_of(first))
    saved = () if share is None else tuple(n for n, x in enumerate(body.nodes) if x.type.op.kind is Kind.COMPUTE)
    saved = saved[share::2]
    found = derivative(body, row, steps, [True, True], saved)
    random = np.random.default_rng(5)
    for _ in range(10):
        operands, gradient = random.standard_normal((2, 6)), random.standard_normal(row.shape)
        here, there = (
            compute(found.body, *values_given(found, body, saved, operands, gradient, moved)) for moved in (False, True)
        )
        for a, b in zip(here, there, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-12)
