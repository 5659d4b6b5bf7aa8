"""Compiled cells against their bodies recorded op by op: random cells, arguments from anywhere."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import edbatch as eb
from edbatch.graph.cell.type_body import places_of
from edbatch.graph.node_type import TYPES
from edbatch.graph.op import OPS
from edbatch.graph.record import record
from edbatch.kernels.cpu.backend import NumPyBackend
from edbatch.kernels.program import Code
from edbatch.memory.plan.windows import Windows
from edbatch.runtime.bound_type import BoundType
from edbatch.runtime.compile.program import Variant

N = 4  # entries of every vector


def make_model():
    model = eb.ParameterCollection(seed=1)
    matrices = [model.add_parameters((N, N), name=f"W{i}") for i in range(3)]
    wide = model.add_parameters((N, 2 * N), name="wide")
    vectors = [model.add_parameters((N,), name=f"b{i}", init="uniform") for i in range(2)]
    table = model.add_lookup_parameters((7, N), name="table")
    small = [model.add_parameters((2, 2), name="S"), model.add_parameters((2, 3), name="T")]
    return model, matrices, wide, vectors, table, small


def square(x):
    return eb.reshape(x, (2, 2))


def flat(x):
    return eb.reshape(x, (N,))


STEPS = {
    "product": lambda p, a, b, k, i: p[0][k % 3] @ a,
    "product from the right": lambda p, a, b, k, i: a @ p[0][k % 3],
    "affine": lambda p, a, b, k, i: eb.affine(p[0][k % 3], a, p[2][k % 2]),
    "concatenated product": lambda p, a, b, k, i: p[1] @ eb.concatenate([a, b]),
    "nested": lambda p, a, b, k, i: eb.concatenate([eb.concatenate([a, b]), b])[N - 1 : 2 * N - 1],
    "turned": lambda p, a, b, k, i: eb.concatenate([b, eb.tanh(a)])[::2],
    "look-up": lambda p, a, b, k, i: p[3][i] * 2 + a,
    "fixed look-up": lambda p, a, b, k, i: p[3][k] - a,
    "softmax": lambda p, a, b, k, i: eb.softmax(a),
    "log_softmax": lambda p, a, b, k, i: eb.log_softmax(b),
    "gates": lambda p, a, b, k, i: eb.sigmoid(a) * b + p[2][k % 2],
    "number": lambda p, a, b, k, i: 0.5 * a - eb.ones(N),
    "layer_norm": lambda p, a, b, k, i: eb.layer_norm(a, p[2][0] + eb.ones(N), p[2][1]),
    "view": lambda p, a, b, k, i: eb.concatenate([a, b])[2 : 2 + N],
    "matrices": lambda p, a, b, k, i: flat(square(a) @ square(b)),
    "parameter times matrix": lambda p, a, b, k, i: flat(p[4][0] @ square(a)) + b,
    "matrix times parameter": lambda p, a, b, k, i: eb.concatenate([a[:1], (square(b) @ p[4][1])[1]]),
    "matrix times vector": lambda p, a, b, k, i: eb.concatenate([square(a) @ b[1:3], b[1:3] @ square(a)]),
    "turned matrix": lambda p, a, b, k, i: flat(eb.transpose(square(a)) @ square(b)),
    "inner product": lambda p, a, b, k, i: (a @ b) * a,
    "sum": lambda p, a, b, k, i: a + eb.sum([a, b, a]),
}


@st.composite
def cells(draw):
    """A list of steps: (name, operand, operand, number); and which values are returned."""
    steps, values = [], 2
    for _ in range(draw(st.integers(1, 7))):
        names = st.sampled_from(sorted(STEPS))
        steps.append((draw(names), *(draw(st.integers(0, values - 1)) for _ in "ab"), draw(st.integers(0, 6))))
        values += 1
    returned = draw(st.lists(st.integers(0, values - 1), min_size=1, max_size=4))
    return steps, returned, draw(st.booleans())


def run(program, n, seed, dtype="float32"):
    steps, returned, joined = program
    random = np.random.default_rng(seed)
    _, *p = make_model() if dtype == "float32" else (None, *make_model()[1:])

    @eb.cell
    def cell(x, y, i: int):
        values = [x, y]
        for name, a, b, k in steps:
            values.append(STEPS[name](p, values[a], values[b], k, i))
        found = [values[at] for at in returned]
        return [*found, eb.concatenate([values[-1], *found])] if joined else found

    with eb.Graph(policy="sufficient") as graph:
        inputs = [eb.input(random.standard_normal(N)) for _ in range(5)]
        out = []
        # Rows that are one for all, in order, and scattered over two sources.
        for call in range(n):
            kind = [inputs[0], inputs[call % 5], eb.tanh(inputs[random.integers(5)])][call % 3]
            out += cell(kind, inputs[random.integers(5) if seed % 2 else 1], call % 7)
        first = eb.forward(out)
        again = []  # results of cells as arguments: parts of rows
        for _ in range(n):
            again += cell(out[random.integers(len(returned))], kind, 3)
        return [*first, *eb.forward(again)], graph


@given(cells(), st.integers(1, 8), st.integers(0, 99))
@settings(max_examples=25)
def test_random_cells(program, n, seed):
    with eb.options(cells=False):
        want, _ = run(program, n, seed)
    for compile in ("full", "plain"):
        with eb.options(compile=compile):
            got, graph = run(program, n, seed)
        assert graph.report().nodes <= 3 * n  # a node a call; some arguments take one
        for value, expected in zip(got, want, strict=True):
            np.testing.assert_allclose(value, expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("n", [1, 128, 129, 700])
def test_blocks(n):
    """Values too wide for the cache are computed in blocks, arguments and look-ups of each block its own."""
    width = 600
    model = eb.ParameterCollection(seed=0)
    table = model.add_lookup_parameters((9, width), name="table")

    @eb.cell
    def cell(x, y, i: int):
        return eb.softmax(eb.concatenate([eb.tanh(x), y]) + eb.concatenate([table[i], x]))

    random = np.random.default_rng(n)
    data = random.standard_normal((11, width)).astype(np.float32)
    picks = random.integers(0, 11, (n, 2))
    with eb.Graph(policy="sufficient"):
        inputs = [eb.input(x) for x in data]
        copies = [eb.tanh(x) for x in inputs]
        # y comes from two windows.
        got = eb.forward([cell(inputs[a], (inputs if a % 2 else copies)[b], int(b) % 9) for a, b in picks])
    x = data[picks[:, 0]].astype(np.float64)
    y = np.where(picks[:, :1] % 2 == 1, data[picks[:, 1]], np.tanh(data[picks[:, 1]]))
    z = np.concatenate([np.tanh(x), y], axis=1) + np.concatenate([table.value()[picks[:, 1] % 9], x], axis=1)
    e = np.exp(z - z.max(axis=1, keepdims=True))
    np.testing.assert_allclose(got, e / e.sum(axis=1, keepdims=True), rtol=2e-5, atol=1e-8)


def program_of(type):
    return BoundType(type, Windows(), NumPyBackend()).program


def variant_of(cell, *arguments):
    with eb.Graph() as graph:
        out = cell(*[eb.zeros(size) for size in arguments])
        type = graph.type_of(out[0] if isinstance(out, tuple) else out)
    return program_of(TYPES[type.id]).variant()


def steps(variant: Variant):
    return variant.tables().steps["code"].tolist()


def test_a_concatenation_of_arguments_takes_no_step():
    _, _, wide, vectors, *_ = make_model()

    @eb.cell
    def cell(x, y):
        return eb.tanh(wide @ eb.concatenate([x, y]) + vectors[0])

    variant = variant_of(cell, N, N)
    assert steps(variant) == [Code.MULTIPLY, Code.KERNEL]  # the product, the fused kernel


def test_what_is_computed_for_a_concatenation_is_computed_there():
    _, (W, *_), wide, *_ = make_model()

    @eb.cell
    def cell(x, y):
        return wide @ eb.concatenate([eb.tanh(x), W @ y]), x

    # W @ y, tanh, the product; the copy of x to the result.
    assert steps(variant_of(cell, N, N)) == [Code.MULTIPLY, Code.KERNEL, Code.MULTIPLY, Code.KERNEL]


def test_products_of_matrices_take_a_step_each():
    *_, (S, T) = make_model()

    @eb.cell
    def cell(x, A, B):
        return A @ x, S @ (A @ B), B @ T

    with eb.Graph() as graph:
        type = graph.type_of(cell(eb.zeros(2), eb.zeros((2, 2)), eb.zeros((2, 2)))[0])
    assert steps(program_of(type).variant()) == [Code.MULTIPLY_EACH] * 4


def test_a_parameter_that_is_stacked_later_is_found_again():
    _, (A, B, _), *_ = make_model()

    @eb.cell
    def one(x):
        return A @ x

    @eb.cell
    def both(x):
        return A @ x, B @ x

    with eb.Graph(policy="sufficient"):
        before = one(eb.ones(N)).value()
        stacked = eb.forward(both(eb.ones(N)))
        A.set_value(2 * A.value())
        with eb.Graph(policy="sufficient"):
            after = one(eb.ones(N)).value()
    np.testing.assert_array_equal(before, stacked[0])
    np.testing.assert_allclose(after, 2 * before, rtol=1e-6)


def test_a_deleted_model_is_an_error_and_no_crash():
    model = eb.ParameterCollection(seed=0)
    W = model.add_parameters((N, N), name="W")

    @eb.cell
    def cell(x):
        return model["W"] @ x

    with eb.Graph(policy="sufficient"):
        cell(eb.ones(N)).value()
    with eb.Graph(policy="sufficient"):
        y = cell(eb.ones(N))
    del W, model._parameters["W"]
    with pytest.raises(eb.EdBatchError, match="was deleted"):
        y.value()


def test_matrices_of_one_row_or_column_and_their_stacks():
    model = eb.ParameterCollection(seed=0)
    parts = [model.add_parameters((1, 3), name=name) for name in "ab"]
    columns = [model.add_parameters((3, 1), name=name) for name in "cd"]

    @eb.cell
    def cell(x, y):
        return parts[0] @ x, parts[1] @ x, columns[0] @ y, columns[1] @ y, x @ columns[0], y @ parts[1]

    random = np.random.default_rng(0)
    x, y = random.standard_normal((6, 3)).astype("f"), random.standard_normal((6, 1)).astype("f")
    with eb.Graph(policy="sufficient"):
        got = [eb.forward(cell(eb.input(a), eb.input(b))) for a, b in zip(x, y, strict=True)]
    a, b, c, d = (p.value().astype(np.float64) for p in (*parts, *columns))
    for values, u, v in zip(got, x, y, strict=True):
        for value, want in zip(values, (a @ u, b @ u, c @ v, d @ v, u @ c, v @ b), strict=True):
            np.testing.assert_allclose(value, want, rtol=1e-5, atol=1e-6)


def test_places_are_none_for_ops_that_compute():
    with eb.Graph() as graph:
        assert places_of(graph.type_of(eb.tanh(eb.zeros(2)))) is None


@pytest.mark.parametrize("compile", ["full", "plain"])
@pytest.mark.parametrize(("dtype", "width"), [("float32", 4), ("float32", 3), ("float64", 8), ("float64", 7)])
def test_entries_far_apart(dtype, width, compile):
    """NumPy, from 2.2 on, negates wrongly where it reads what is 16 (float32) or 64 bytes apart: arguments, results."""
    op_of = {name: op for name, op in OPS.items() if op.elementwise and op.samples and len(op.samples[0].shapes) == 1}
    names = [name for name in op_of if not op_of[name].payload and not op_of[name].samples[0].attributes]
    assert len(names) > 15
    x = np.linspace(0.1, 0.9, 5 * width).astype(dtype).reshape(5, width)
    for name in names:

        def results(x, op=op_of[name]):
            return record(op, (x[:1],)), x * 2.0

        with eb.options(compile=compile):
            found = []
            for batched in (True, False):
                graphs = [eb.Graph(policy="sufficient", dtype=dtype) for _ in range(1 if batched else 5)]
                call = eb.cell(results)
                rows = []
                for at, row in enumerate(x):
                    with graphs[0 if batched else at]:
                        rows.append(call(eb.input(row))[0])
                found.append(np.concatenate([row.value() for row in rows]))
        np.testing.assert_allclose(*found, rtol=1e-6, err_msg=name)
