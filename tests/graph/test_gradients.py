"""The gradient of every op of the table, on its samples, against finite differences of the float64 oracle."""

import itertools

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.model.parameters import Parameter
from edbatch.graph.op import OPS, Kind, no_gradient
from edbatch.graph.record import to_node
from edbatch.graph.views import look
from tests.arrays import on_host
from tests.gradients import compare, numeric
from tests.graph.nodes import added, chosen, shapes_of
from tests.graph.test_ops import BATCH, CASES, OPERANDS, draw, one_of_each, place
from tests.oracle import ORACLE

COMPARISONS = {"greater", "greater_equal", "less", "less_equal", "equal", "not_equal", "alike"}
NUMBERS = {"first", "argmax", "argmin", "one_hot", "top_k", "last_at"}  # of entries
TOLERANCES = [("float32", 1e-4, 2e-5), ("float64", 1e-6, 1e-7)]
WAYS = [("sufficient", False), ("sufficient", True), ("none", False)]  # policies, and whether nodes are read in cells
FLAT = {"stop_gradient", *COMPARISONS, *NUMBERS}


def test_every_op_has_a_gradient_or_says_that_it_has_none():
    ops = [op for op in OPS.values() if op.kind is not Kind.SOURCE]
    written = {op.name for op in ops if op.composite and op.gradient is None}
    assert {op.name for op in ops if op.gradient in (None, no_gradient)} == written | FLAT
    assert all(op.composite is not None for op in ops if op.variadic)
    assert {op.name for op in ops if op.gradient is no_gradient} == FLAT


def build(op, sample, how, policy, cells, dtype="float64", known=None):
    """Nodes of an op, and what their gradients must be.

    Args:
        known: finite differences of operands so lying, which do not depend on what comes after `how`.

    Returns:
        The loss, a weighted sum of the nodes' entries; and pairs: an operand, and the loss's gradient.
    """
    random, known = np.random.default_rng(11), {} if known is None else known
    attributes = dict(sample.attributes)
    model = eb.ParameterCollection(dtype=dtype)
    graph = eb.Graph(policy=policy, dtype=dtype)
    operands: dict[int, tuple] = {}
    wants: dict[int, np.ndarray] = {}
    terms = []

    @eb.cell
    def product(x, weights):  # in a cell: gradients come as parts of a row
        return eb.sum(x * weights), x

    with graph:
        shapes = shapes_of(op, sample)
        # No two operands have equal entries: between them, minimum and maximum have kinks.
        columns = [
            [draw(random, shape, sample) + 0.007 * slot for _ in range(BATCH)] for slot, shape in enumerate(shapes)
        ]
        places = [place(values, how, model, slot, len(columns)) for slot, values in enumerate(columns)]
        if op.kind is Kind.VIEW or op.variadic:
            places = [[to_node(graph, x) for x in column] for column in places]
        for number in range(BATCH) if how != "shuffled" else [3, 0, 4, 4, 1]:
            slots = chosen(op, sample, number)
            xs, values = ([of[slot][number] for slot in slots] for of in (places, columns))
            payload = [int(random.integers(bound)) for bound in sample.payload]
            y = added(op, tuple(attributes.items()), xs, payload, graph)
            weights = random.uniform(0.5, 1.5, y.shape)
            terms.append(product(y, eb.input(weights))[0] if cells else eb.sum(y * eb.input(weights)))
            for slot, x in enumerate(xs):

                def loss(value, slot=slot, values=values, payload=payload, weights=weights):
                    given = [*values[:slot], value, *values[slot + 1 :]]
                    return np.sum(weights * ORACLE[op.name](*given, *payload, **attributes))

                place_of = len(terms), slot
                if place_of not in known:
                    known[place_of] = numeric(loss, values[slot])
                want = known[place_of]
                if op.gradient is no_gradient:
                    want = want * 0
                elif op.name == "scale_gradient":
                    want = want * attributes["scale"]
                key = id(x) if isinstance(x, Parameter) else x.id
                operands[key] = x
                wants[key] = wants.get(key, 0) + want
    return eb.sum(terms), [(operands[key], want) for key, want in wants.items()], graph


@pytest.mark.filterwarnings("ignore:backward. no parameter got a gradient")
@pytest.mark.parametrize(("op", "sample"), CASES)
def test_gradients_equal_finite_differences(op, sample):
    known = {}
    for tolerances in TOLERANCES:
        compare_gradients(op, sample, "rows", *tolerances, known)


@pytest.mark.filterwarnings("ignore:backward. no parameter got a gradient")
@pytest.mark.parametrize(("op", "sample"), one_of_each(CASES, -1))
def test_gradients_however_operands_lie(op, sample):
    known = {}
    for how, tolerances in zip(OPERANDS[1:], itertools.cycle(TOLERANCES), strict=False):
        compare_gradients(op, sample, how, *tolerances, known if how in ("slices", "flipped", "mixed") else None)


def compare_gradients(op, sample, how, dtype, rtol, atol, known=None):
    """Batched, one by one, and read in a cell, gradients are the differences; `known`: see `build`."""
    of_rows = WAYS[:2] if dtype == "float64" else WAYS[2:]
    for policy, cells in of_rows if how == "rows" else WAYS[:1]:
        loss, wants, _ = build(op, sample, how, policy, cells, dtype, known)
        loss.backward()
        for operand, want in wants:
            got = on_host(operand.grad()) if isinstance(operand, Parameter) else operand.gradient()
            assert (got.shape, got.dtype) == (want.shape, dtype)
            np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)


def drawn(op, sample):
    """What an op between two products computes with: W, b, sizes of its operands; inputs and integers of some calls."""
    random = np.random.default_rng(2)
    sizes = [int(np.prod(shape)) for shape in sample.shapes]
    W = random.uniform(-0.3, 0.3, (sum(sizes), 3))
    low, high = max(sample.low, -1.0), min(sample.high, 1.0)
    middle = np.concatenate([np.linspace(low + 0.1, high - 0.2, size) + 0.03 * at for at, size in enumerate(sizes)])
    b = random.permutation(middle)
    inputs = [random.uniform(-0.1, 0.1, 3) for _ in range(4)]
    return W, b, sizes, inputs, [[int(random.integers(bound)) for bound in sample.payload] for _ in inputs]


def between_products(op, sample, dtype):
    """An op between two products, whose results are saved or computed again; operands are parts of one vector.

    Returns:
        The model, and what records the loss of some calls of a cell with the op.
    """
    W, b, sizes, inputs, integers = drawn(op, sample)
    model = eb.ParameterCollection(seed=1, dtype=dtype)
    W, b = model.add_parameters(W.shape, name="W", init=W), model.add_parameters(b.shape, name="b", init=b)
    attributes = tuple(sample.attributes.items())

    def function(x, *integers):
        parts = eb.split(eb.affine(W, x, b), sizes)
        xs = [eb.reshape(part, shape) if shape else part[0] for part, shape in zip(parts, sample.shapes, strict=True)]
        if op.kind is Kind.VIEW:
            y = look(xs[0], op, attributes)
        else:
            codes = [
                x if isinstance(x, int) else x.used_in(limit, "integer")
                for x, limit in zip(integers, sample.payload, strict=True)
            ]
            y = added(op, attributes, xs, codes)
        return eb.sum(eb.square(y))

    cell = eb.cell(function)

    def loss():
        with eb.Graph(policy="sufficient", dtype=dtype):
            return eb.sum([cell(eb.input(x), *i) for x, i in zip(inputs, integers, strict=True)])

    return model, loss


def differences_between_products(op, sample):
    """By name, the gradients of the parameters, by finite differences of the oracle."""
    W, b, sizes, inputs, integers = drawn(op, sample)

    def loss(W, b):
        total = 0.0
        for x, payload in zip(inputs, integers, strict=True):
            parts = np.split(W @ x + b, np.cumsum(sizes)[:-1])
            xs = [part.reshape(shape) for part, shape in zip(parts, sample.shapes, strict=True)]
            total += np.sum(np.square(ORACLE[op.name](*xs, *payload, **sample.attributes)))
        return total

    return {"W": numeric(lambda W: loss(W, b), W), "b": numeric(lambda b: loss(W, b), b)}


@pytest.mark.parametrize(
    ("op", "sample"),
    one_of_each(
        [
            case
            for case in CASES
            for op in case.values[:1]
            if not op.variadic and op.gradient is not no_gradient and op.name != "scale_gradient"  # no derivative
        ],
        -1,
    ),
)
def test_in_a_cell(op, sample):
    wants = differences_between_products(op, sample)
    for dtype, recompute, rtol, atol in (("float64", False, 1e-5, 1e-7), ("float32", True, 2e-4, 2e-5)):
        model, loss = between_products(op, sample, dtype)
        with eb.options(recompute=recompute):
            loss().backward()
        compare(model, wants, rtol=rtol, atol=atol)
