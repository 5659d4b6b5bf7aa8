"""Which ops of a cell are early, in the core, and late; and that the parts put together compute the whole."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.cell.passes.split_stages import CORE, EARLY, LATE, may_split, split_stages
from edbatch.graph.cell.trace import ARGUMENT
from edbatch.graph.spec import ParameterSpec

DIM = 4
MODEL = eb.ParameterCollection(seed=0)
W, U, V = (MODEL.add_parameters((DIM, DIM), name=name) for name in "WUV")
B = MODEL.add_parameters((DIM,), name="b")


def split(function, arguments, eager, needed=None, compile="full"):
    """The parts of a cell of vectors, by stage."""
    with eb.options(compile=compile), eb.Graph() as graph:
        made = eb.cell(function)(*[n if isinstance(n, int) else eb.ones(DIM) for n in arguments])
        type = graph.type_of(made[0] if isinstance(made, tuple) else made)
    outputs = range(len(type.op.codes))
    parts = split_stages(
        type.op.compiled.splittable,
        type.op.columns,
        type.out,
        frozenset(eager),
        frozenset(outputs if needed is None else needed),
    )
    if parts is None:
        return None
    assert parts[-1].columns == type.op.columns
    assert parts[-1].row is type.out
    for number, part in enumerate(parts):
        assert part.body.nodes[: len(part.body.arguments)] == tuple(
            node for node in part.body.nodes if node.type.op is ARGUMENT
        )
        assert len(part.given) == len(part.body.arguments) + part.body.payloads
        for source, spec in zip(part.given, part.body.arguments, strict=False):
            assert spec is (parts[-1 - source].row if source < 0 else type.operands[source])
            assert -1 - source < number
    return {part.stage: part for part in parts}


def ops(part):
    return [node.type.op.name for node in part.body.nodes if node.type.op is not ARGUMENT]


def test_products_with_the_input_are_early_and_their_biases_go_with_them():
    parts = split(lambda x, h: eb.tanh(W @ x + B + U @ h), (..., ...), {0})
    assert ops(parts[EARLY]) == ["affine"]
    assert ops(parts[CORE]) == ["matmul", "add", "tanh"]
    assert [part.given for part in parts.values()] == [(0,), (-1, 1)]


def test_what_is_early_of_several_weights_is_returned_weight_by_weight():
    """In one piece of the row, which the core reads as one."""

    def step(x, h):
        return eb.tanh(V @ x + h), eb.exp(W @ x), eb.sigmoid(U @ x + h)

    parts = split(step, (..., ...), {0})
    assert ops(parts[EARLY]) == ["matmul"]
    assert parts[EARLY].columns == (0, DIM, 2 * DIM)
    assert parts[EARLY].row.shape == (3 * DIM,)
    assert "concatenate" not in ops(parts[CORE])


def test_element_wise_ops_are_early_only_where_a_product_needs_them():
    parts = split(lambda x, h: eb.tanh(eb.sigmoid(W @ eb.exp(x)) * h + eb.exp(x)), (..., ...), {0})
    assert ops(parts[EARLY]) == ["exp", "matmul"]
    assert ops(parts[CORE]) == ["sigmoid", "multiply", "add", "tanh"]
    assert parts[EARLY].row.shape == (2 * DIM,)  # both results are read


def test_what_does_not_fuse_is_early_beside_a_product():
    parts = split(lambda x, h: eb.tanh(W @ x + h) * eb.softmax(x), (..., ...), {0})
    assert sorted(ops(parts[EARLY])) == ["matmul", "softmax"]
    assert split(lambda x, h: eb.tanh(h) * eb.softmax(x), (..., ...), {0}) is None


def test_what_depends_on_no_argument_is_computed_where_it_is_used():
    parts = split(lambda x, h: (W * 2.0) @ x + (W * 2.0) @ h, (..., ...), {0})
    assert ops(parts[EARLY]) == ["input", "multiply", "matmul"]
    assert ops(parts[CORE]) == ["input", "multiply", "matmul", "add"]


def test_read_outs_are_late():
    def step(x, h):
        h = eb.tanh(W @ x + U @ h)
        return h, eb.softmax(V @ h + B), eb.exp(h)

    parts = split(step, (..., ...), {0}, {0})
    assert sorted(ops(parts[LATE])) == ["affine", "exp", "softmax"]
    assert ops(parts[CORE]) == ["matmul", "add", "tanh"]
    assert parts[CORE].codes == {0: 0}
    assert parts[LATE].given == (-2,)
    assert LATE not in split(step, (..., ...), {0}, {0, 1})
    assert LATE not in split(lambda x, h: (eb.tanh(W @ x + h), eb.exp(h)), (..., ...), {0}, {0})
    assert EARLY not in split(step, (..., ...), set(), {0})


def test_what_only_late_ops_need_is_late():
    def step(x, h):
        return eb.tanh(W @ h), eb.softmax(V @ x + U @ h)

    parts = split(step, (..., ...), {0}, {0}, compile="plain")
    assert EARLY not in parts
    assert parts[LATE].given == (-1, 0, 1)  # all outputs are returned together


def test_late_ops_read_what_the_core_computes_beside_its_outputs():
    def step(x, h):
        gates = eb.sigmoid(U @ h)
        return gates * x, V @ gates + W @ x

    parts = split(step, (..., ...), {0}, {0})
    assert parts[CORE].row.shape == (2 * DIM,)
    assert [part.stage for part in parts.values()] == [CORE, LATE]


def test_nothing_to_split():
    assert split(lambda x, h: eb.tanh(W @ (x + h)), (..., ...), {0}) is None
    assert split(lambda x, h: eb.tanh(x * h), (..., ...), {0}) is None
    assert split(lambda x, h: eb.tanh(W @ x + U @ h), (..., ...), set()) is None
    assert split(lambda x, h: eb.tanh(W[:, 0] * x + U @ h), (..., ...), {0}) is None


def test_integers_go_where_they_are_used():
    table = eb.ParameterCollection().add_lookup_parameters((9, DIM), name="table")

    def step(word: int, h, label: int):
        h = eb.tanh(W @ eb.lookup(table, word) + h)
        return h, eb.cross_entropy(V @ h, label), eb.pick(h, word)

    parts = split(step, (3, ..., 2), set(), {0})
    assert [part.given for part in parts.values()] == [(1,), (-1, 0), (-2, 1, 2)]
    assert [part.body.payloads for part in parts.values()] == [1, 0, 2]


def test_a_chain_of_views_that_would_become_too_long():
    def step(x, h, *, depth):
        y, z = W @ x, eb.softmax(V @ x)
        for _ in range(depth):
            y = y[::-1]
        return h * y + z

    assert split(lambda x, h: step(x, h, depth=7), (..., ...), {0}, compile="plain") is not None
    assert split(lambda x, h: step(x, h, depth=8), (..., ...), {0}, compile="plain") is None


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x, h: W @ x + U @ h, (True, False, False)),
        (lambda x, h: W @ (x + h), (False, False, False)),
        (lambda x, h: (x + h, W @ (x + h)), (False, True, False)),
        (lambda x, h: (W @ (x + h), x), (False, True, False)),
        (lambda x, h: (x * h, x + h), (False, False, False)),
        (lambda x: (W @ x, x), (False, True, False)),
        (lambda x: W @ x, (False, False, False)),
    ],
)
def test_may_split(function, expected):
    with eb.Graph() as graph:
        made = eb.cell(function)(*[eb.ones(DIM)] * function.__code__.co_argcount)
        type = graph.type_of(made[0] if isinstance(made, tuple) else made)
    assert may_split(type.op.compiled.splittable) == expected == (type.op.has_early, type.op.has_late, type.op.looks_up)


@pytest.mark.parametrize(("size", "expected"), [(256, True), (255, False)])
def test_large_products_of_what_is_looked_up(size, expected):
    model = eb.ParameterCollection(seed=0)
    table, W = model.add_lookup_parameters((3, 256), name="t"), model.add_parameters((size, 256), name="W")

    @eb.cell
    def leaf(word: int):
        return eb.tanh(W @ table[word])

    with eb.Graph() as graph:
        assert graph.type_of(leaf(1)).op.looks_up == expected


def test_stacked_products_are_split_as_one():
    model = eb.ParameterCollection(seed=0)
    A, B, C, D = (model.add_parameters((DIM, DIM), name=name) for name in "ABCD")
    parts = split(lambda x, h: eb.tanh(A @ x + C @ h) * eb.sigmoid(B @ x + D @ h), (..., ...), {0})
    for stage, name in [(EARLY, "A|B"), (CORE, "C|D")]:
        names = [
            spec.name for node in parts[stage].body.nodes for spec in node.type.operands
            if isinstance(spec, ParameterSpec)
        ]  # fmt: skip
        assert names == [name]


def test_parts_together_compute_the_whole():
    """Every set of eager arguments and needed outputs of a cell with all kinds of ops, run in the runtime."""

    @eb.cell
    def step(x, y, h):
        near = eb.softmax(W @ x) * y
        h = eb.tanh(eb.concatenate([U @ h, V @ near])[1 : DIM + 1] + B)
        return h, eb.sum(V @ h) * x, eb.reshape(W @ (y + x), (2, 2)), near

    def build():
        out = []
        states = [[eb.ones(DIM) * k for k in range(3)] for _ in range(8)]
        for wiring, state in enumerate(states):  # which operands come from the step before
            for _ in range(3):
                made = step(*state)
                state = [
                    made[0] if wiring & 1 else state[0],
                    made[1] if wiring & 2 else state[1],
                    eb.reshape(made[2], (DIM,)) if wiring & 4 else made[3] + made[0],
                ]
                out += [eb.reshape(x, (DIM,)) for x in made]
        return out

    values = []
    for options in ({}, {"split": False}, {"cells": False}):
        with eb.options(**options), eb.Graph(policy="sufficient", dtype="float32"):
            values.append(eb.forward(build()))
    np.testing.assert_allclose(values[0], values[2], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(values[1], values[2], rtol=1e-4, atol=1e-5)


def test_what_others_read_is_computed_once():
    """A result that depends on no argument would be another value, and have another gradient, in a late part."""
    model = eb.ParameterCollection(seed=0)
    K, L = (model.add_parameters((DIM, DIM)) for _ in range(2))  # which no other test has in one array
    assert split(lambda x, h: (B * 2.0, L @ h), (..., ...), {0}, {0}) is None
    assert split(lambda x, h: (B * 2.0, eb.tanh(K @ h), L @ h), (..., ...), {0}, {0, 1}, compile="plain") is None
    assert LATE in split(lambda x, h: (B * 2.0, eb.tanh(K @ h), L @ h), (..., ...), {0}, {1}, compile="plain")
