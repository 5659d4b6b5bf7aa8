"""Every op of the table, on its samples: batched == unbatched == float64 oracle, however its operands lie in memory."""

import copy
import itertools

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.op import OPS, Kind
from edbatch.graph.record import to_node
from tests.graph.nodes import added, chosen, shapes_of
from tests.oracle import ORACLE

BATCH = 5


def cases_of(ops):
    """Every sample of ops, as parameters of tests."""
    return [
        pytest.param(op, sample, id=f"{op.name}-{number}") for op in ops for number, sample in enumerate(op.samples)
    ]


def one_of_each(cases, turn):
    """The cases, of which one of each op always runs, and the others with `-m slow`.

    For tests of what depends less on the op than on how its operands lie, or on what is around it.

    Args:
        turn: which of an op's samples always runs: 0 is the first, -1 the last, which is the largest.
    """
    ops = {}
    for case in cases:
        ops.setdefault(case.values[0], []).append(case.id)
    always = {ids[turn % len(ids)] for ids in ops.values()}
    return [
        case if case.id in always else pytest.param(*case.values, id=case.id, marks=pytest.mark.slow) for case in cases
    ]


CASES = cases_of(OPS.values())
TOLERANCES = [("float32", 2e-5, 2e-6), ("float64", 1e-9, 1e-11)]
OPERANDS = ["rows", "shared", "parameter", "parameter first", "slices", "flipped", "mixed", "shuffled"]


def test_every_op_has_samples_and_an_oracle():
    computed = {op.name for op in OPS.values() if op.kind is not Kind.SOURCE}
    assert computed == set(ORACLE)
    assert {op.name for op in OPS.values() if op.samples} == computed - {"lookup"}


def draw(random, shape, sample):
    """Entries within the sample's range, no two closer than where an op has a kink (0, ties, clip bounds)."""
    grid = np.linspace(sample.low, sample.high, 64) + 0.0123
    return random.choice(grid, size=shape, replace=int(np.prod(shape)) > 64)


def place(values, how, model, slot, slots):
    """One operand per sample, with its values where `how` says."""
    is_parameter = slots > 1 and ((how == "parameter" and slot > 0) or (how == "parameter first" and slot == 0))
    if how == "shared" or is_parameter:
        values[:] = [values[0]] * len(values)
    if how == "shared" and slot == 0:
        x = eb.input(values[0])
        return [x] * len(values)
    if is_parameter:
        return [model.add_parameters(values[0].shape, init=values[0])] * len(values)
    nodes = []
    for number, value in enumerate(values):
        if how == "slices" or (how == "mixed" and number % 2):
            padded = np.pad(value, [(1, 2)] * value.ndim) if value.ndim else np.array([9, value, 9])
            key = tuple(slice(1, -2) for _ in range(value.ndim)) if value.ndim else 1
            nodes.append(eb.input(padded)[key])
        elif how == "flipped" and value.ndim:
            nodes.append(eb.flip(eb.input(np.flip(value, -1)), -1))
        else:
            nodes.append(eb.input(value))
    return nodes


def build(op, sample, how, policy, random, dtype):
    """A graph with one node per sample; returns its values and what the oracle says."""
    attributes = dict(sample.attributes)
    model = eb.ParameterCollection(dtype=dtype)
    expected, nodes = [], []
    with eb.Graph(policy=policy, dtype=dtype) as graph:
        columns = [[draw(random, shape, sample) for _ in range(BATCH)] for shape in shapes_of(op, sample)]
        places = [place(values, how, model, slot, len(columns)) for slot, values in enumerate(columns)]
        if op.kind is Kind.VIEW or op.variadic:
            places = [[to_node(graph, x) for x in column] for column in places]
        order = range(BATCH) if how != "shuffled" else [3, 0, 4, 4, 1]
        for number in order:
            payload = [int(random.integers(bound)) for bound in sample.payload]
            slots = chosen(op, sample, number)
            operands, values = ([of[slot][number] for slot in slots] for of in (places, columns))
            nodes.append(added(op, tuple(attributes.items()), operands, payload, graph))
            expected.append(ORACLE[op.name](*values, *payload, **attributes))
        got = eb.forward(nodes)
    return got, expected, graph


@pytest.mark.parametrize(("op", "sample"), CASES)
def test_batched_equals_unbatched_equals_oracle(op, sample):
    for tolerances in TOLERANCES:
        compare_values(op, sample, "rows", *tolerances)


@pytest.mark.parametrize(("op", "sample"), one_of_each(CASES, -1))
def test_however_operands_lie(op, sample):
    for how, tolerances in zip(OPERANDS[1:], itertools.cycle(TOLERANCES), strict=False):
        compare_values(op, sample, how, *tolerances)


def compare_values(op, sample, how, dtype, rtol, atol):
    """Batched, and one by one, values are those of the oracle."""
    for policy in ("sufficient", "none") if how in ("rows", "mixed") else ("sufficient",):
        random = np.random.default_rng(7)
        got, expected, graph = build(op, sample, how, policy, random, dtype)
        for value, want in zip(got, expected, strict=True):
            assert (value.shape, value.dtype) == (np.shape(want), dtype)
            np.testing.assert_allclose(value, want, rtol=rtol, atol=atol)
        if policy == "sufficient" and op.kind is Kind.COMPUTE:
            assert graph.report().batches == 1


def test_lookups_of_different_rows_are_one_batch():
    model = eb.ParameterCollection(seed=1)
    table = model.add_lookup_parameters((20, 3), name="table")
    with eb.Graph(policy="sufficient") as graph:
        rows = [eb.lookup(table, index) for index in (3, 19, 3, -1, 0)] + [table[7]]
        got = eb.forward(rows)
    np.testing.assert_array_equal(got, table.value()[[3, 19, 3, -1, 0, 7]])
    assert graph.report().batches == 1


def test_views_of_views_of_any_depth():
    values = np.arange(40.0).reshape(5, 8)
    with eb.Graph(policy="none") as graph:
        x = eb.input(values)
        for _ in range(30):
            x = eb.flip(x.T, 0)
        total = eb.sum(x, axis=0)
        got, summed = eb.forward([x, total])
    want = values
    for _ in range(30):
        want = np.flip(want.T, 0)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_allclose(summed, want.sum(axis=0))
    assert graph.report().batches < 10


def test_copied_parameters_are_others():
    model = eb.ParameterCollection(seed=0)
    model.add_parameters((2, 2), name="W")
    other = copy.deepcopy(model)
    other["W"].set_value(np.eye(2))
    with eb.Graph(policy="sufficient") as graph:
        x = eb.input([1.0, 2.0])
        mine, theirs = eb.forward([model["W"] @ x, other["W"] @ x])
    np.testing.assert_allclose(mine, model["W"].value() @ [1, 2], rtol=1e-6)
    np.testing.assert_array_equal(theirs, [1, 2])
    assert graph.report().batches == 2
