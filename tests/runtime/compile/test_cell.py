"""Compiled cells: the same numbers compiled plainly and in full, and what the layout says is so in the body."""

import random
from itertools import permutations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import edbatch as eb
from edbatch.graph.cell.passes import prepare_for_batching
from edbatch.graph.op import Kind
from edbatch.graph.options import Options
from edbatch.memory.layout import Reach
from edbatch.runtime.compile.cell import compile_cell, find_batches
from tests.graph.bodies import compute, names, trace

D = 4
UNARY = [eb.tanh, eb.sigmoid, eb.exp, eb.square, lambda x: 1 - x, lambda x: x * 0.5, lambda x: x[::-1]]
BINARY = [eb.add, eb.multiply, eb.maximum, lambda x, y: eb.sum([x, y])]


def random_cell(seed, model):
    """A function of three vectors: products with a few weights, element-wise ops, slices, concatenations."""
    rng = random.Random(seed)
    square = [model.add_parameters((D, D), name=f"W{i}") for i in range(4)]
    wide = [model.add_parameters((D, 2 * D), name=f"V{i}") for i in range(3)]
    tall = [model.add_parameters((2 * D, D), name=f"T{i}") for i in range(2)]
    biases = [model.add_parameters((D,), name=f"b{i}", init=0.1 * (i + 1)) for i in range(3)]
    steps = [(rng.randrange(9), rng.random(), rng.random(), rng.random()) for _ in range(rng.randint(3, 16))]

    def pick(these, at):
        return these[int(at * len(these))]

    def function(x, y, z):
        values = [x, y, z]
        for kind, a, b, c in steps:
            v, w = pick(values, a), pick(values, b)
            if kind <= 1:
                values.append(pick(square, c) @ v)
            elif kind == 2:
                values.append(eb.affine(pick(square, c), v, pick(biases, b)))
            elif kind == 3:
                values.append(eb.tanh(pick(wide, c) @ eb.concatenate([v, w]) + pick(biases, a)))
            elif kind == 4:
                values += eb.split(eb.sigmoid(pick(tall, c) @ v), 2)
            elif kind <= 6:
                values.append(pick(BINARY, c)(v, w))
            elif kind == 7:
                values.append(v + pick(biases, c))
            else:
                values.append(eb.tanh(pick(UNARY, c)(v)))
        return [values[-1], pick(values, steps[0][1]), eb.concatenate(values[-2:])]

    return function


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["float32", "float64"]))
def test_random_cells_compute_their_function(seed, dtype):
    model = eb.ParameterCollection(seed=seed, dtype=dtype)
    function = eb.cell(random_cell(seed, model))
    vectors = np.random.default_rng(seed).normal(size=(3, 3, D)) * 0.5
    with eb.options(cells=False), eb.Graph(policy="none", dtype=dtype):
        want = eb.forward([out for call in vectors for out in function(*map(eb.input, call))])
    for compile in ("plain", "full", "plain"):  # at last with parameters that are stacked
        with eb.options(compile=compile), eb.Graph(policy="sufficient", dtype=dtype):
            got = eb.forward([out for call in vectors for out in function(*map(eb.input, call))])
        for value, wanted in zip(got, want, strict=True):
            np.testing.assert_allclose(value, wanted, rtol=1e-10 if dtype == "float64" else 2e-3, atol=1e-4)


@settings(max_examples=60, deadline=None)
@example(6766)  # weights of two products overlap
@example(8553)  # parts of different stacks are of different kinds
@given(st.integers(0, 10**6))
def test_what_lies_side_by_side_is_one_node(seed):
    """Products whose weights the layout makes contiguous are stacked; concatenations that are views are no nodes."""
    function = random_cell(seed, eb.ParameterCollection(seed=seed, dtype="float64"))
    body = trace(function, (D,), (D,), (D,))
    found = len(find_batches_of(body))  # before parameters are stacked
    compiled = compile_cell(body, "xyz", Options())
    layout, merged = compiled.layout, compiled.splittable
    stacked = [node.type.operands[0].name for node in merged.nodes if node.type.op.name in ("matmul", "affine")]
    for verdict in layout.verdicts:
        op = layout.ops[verdict.op]
        if op.name.startswith("matmul x") and verdict.slot == 0 and verdict.reach is Reach.VIEW:
            order = [op.operands[0][at] for at in layout.batch_orders[verdict.op]]
            assert "|".join(layout.variables[index].name for index in order) in stacked
    values = np.random.default_rng(seed).normal(size=(3, D))
    for got, want in zip(compute(merged, *values), compute(body, *values), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10)
    assert compiled.batches == compiled.split + found
    assert compiled.least <= compiled.batches - compiled.split


def find_batches_of(body):
    return find_batches(prepare_for_batching(body, plain=False, named=True), plain=False).batches


@pytest.mark.parametrize("order", list(permutations("ifou")))
def test_gates_may_be_written_in_any_order(order):
    """Sigmoids end up side by side, wherever they are declared: one product, one bias, one sigmoid, no copies."""
    model = eb.ParameterCollection(seed=0, dtype="float64")
    W = {gate: model.add_parameters((D, D), name=f"W_{gate}") for gate in "ifou"}
    b = {gate: model.add_parameters((D,), name=f"b_{gate}", init=0.1) for gate in "ifou"}

    def step(x, c):
        sums = {gate: W[gate] @ x + b[gate] for gate in order}
        i, f, o = (eb.sigmoid(sums[gate]) for gate in "ifo")
        c = i * eb.tanh(sums["u"]) + f * c
        return o * eb.tanh(c), c

    body = trace(step, (D,), (D,))
    compiled = compile_cell(body, "xc", Options())
    assert compiled.layout.moved == 0
    assert names(compiled.splittable).count("affine") == names(compiled.splittable).count("sigmoid") == 1
    values = np.random.default_rng(0).normal(size=(2, D))
    for got, want in zip(compute(compiled.splittable, *values), compute(body, *values), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_a_concatenation_of_intermediates_is_where_they_are_computed():
    model = eb.ParameterCollection(seed=0)
    W = {name: model.add_parameters((D, 2 * D), name=name) for name in ("r1", "n", "r2")}
    V = model.add_parameters((D, 2 * D), name="V")

    @eb.cell
    def compose(h1, h2):
        e = eb.concatenate([h1, h2])
        r2, n, r1 = (eb.sigmoid(W[name] @ e) for name in ("r2", "n", "r1"))
        return eb.tanh(V @ eb.concatenate([r1 * h1, r2 * h2])) * n

    with eb.Graph(policy="sufficient"):
        value = compose(eb.ones(D), -eb.ones(D)).value()
    ((_, compiled),) = compose.compiled()
    assert names(compiled.body).count("concatenate") == 1  # of what is given
    assert compiled.layout.moved == 0
    with eb.options(cells=False), eb.Graph():
        np.testing.assert_allclose(value, compose(eb.ones(D), -eb.ones(D)).value(), rtol=1e-5, atol=1e-6)


def test_there_is_a_plain_trace_and_a_full_one():
    model = eb.ParameterCollection(seed=0)
    cell = eb.cell(random_cell(3, model))
    for compile in ("full", "plain", "full", "plain"):
        with eb.options(compile=compile), eb.Graph():
            cell(eb.ones(D), eb.ones(D), eb.zeros(D))
    traces = cell.compiled()
    assert [compiled.without for _, compiled in traces] == [(), ("passes",)]
    assert all(set(compiled.seconds) == {"simplify", "batch", "layout", "merge", "report"} for _, compiled in traces)


def test_vectors_of_one_entry():
    """Parameters of one entry are as large as numbers that a whole batch shares, and are none."""
    model = eb.ParameterCollection(seed=0, dtype="float64")
    b = [model.add_parameters((1,), init=float(at)) for at in range(4)]

    def function(x, y):
        return eb.exp(b[0] + x) * eb.exp(y + b[1]) * eb.exp(b[2] * x) * eb.exp(b[3] * y) + (b[0] + y)

    body = trace(function, (1,), (1,))
    for compile in ("plain", "full"):
        compiled = compile_cell(body, "xy", Options(compile=compile))
        np.testing.assert_allclose(compute(compiled.body, [0.5], [0.25]), compute(body, [0.5], [0.25]), rtol=1e-12)


def test_nothing_but_sources():
    body = trace(lambda x: (x, 2.0), (D,))
    compiled = compile_cell(body, ["x"], Options())
    assert compiled.batches == 0
    assert all(node.type.op.kind is Kind.SOURCE for node in compiled.body.nodes)
