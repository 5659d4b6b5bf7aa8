"""Ops that are written with others: one node, one kernel, and what the others would give."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.cell.passes.fuse import Run, fuse
from edbatch.graph.cell.type_body import body_of_type
from edbatch.graph.node_type import node_type
from edbatch.graph.op import OPS
from tests.oracle import ORACLE

COMPOSITES = [
    pytest.param(op, sample, id=f"{op.name}-{number}")
    for op in OPS.values()
    if op.composite is not None
    for number, sample in enumerate(op.samples)
]


def type_of(op, sample, dtype="float32"):
    with eb.Graph(dtype=dtype):
        specs = tuple(eb.zeros(shape).spec for shape in sample.shapes)
    return node_type(op, tuple(sample.attributes.items()), specs)


# Ops that go through the same entries more than once, in another order or with others beside them.
LAYERED = {"scatter", "scatter_add", "k_max_pool", "cumsum", "unfold", "conv1d", "conv2d"}
LAYERED |= {f"{kind}_pool{n}d" for kind in ("max", "avg") for n in (1, 2)}  # with entries around


@pytest.mark.parametrize(("op", "sample"), [case for case in COMPOSITES if case.values[0].name not in LAYERED])
def test_a_composite_is_a_run(op, sample):
    body = body_of_type(type_of(op, sample))[0]
    assert all(node.type.op.composite is None for node in body.nodes)
    runs = fuse(body)
    assert all(isinstance(run, Run) for run in runs)
    assert len(runs) == 1 + (op.name == "hinge")  # what it picks comes first: it goes to every entry


@pytest.mark.parametrize(("op", "sample"), COMPOSITES)
def test_in_a_cell_beside_others(op, sample):
    random = np.random.default_rng(0)
    given = [random.uniform(max(sample.low, -1), min(sample.high, 1), (3, *shape)) for shape in sample.shapes]
    integers = [int(random.integers(bound)) for bound in sample.payload]
    attributes = tuple(sample.attributes.items())

    @eb.cell
    def cell(*xs):
        type = node_type(op, attributes, tuple(x.spec for x in xs))
        y = xs[0].graph.add(type, [*(x.id for x in xs), *integers])
        return eb.tanh(y) * 2, y, eb.reshape(y, -1)

    with eb.Graph(policy="none"):
        xs = [[eb.input(x[call]) for x in given] for call in range(3)]
        calls = [cell(*of_call) for of_call in xs]
        eb.sum([eb.sum(part) for parts in calls for part in parts]).backward()
        got = eb.forward([part for parts in calls for part in parts])
        assert all(np.isfinite(x.gradient()).all() for of_call in xs for x in of_call)
    for call in range(3):
        want = ORACLE[op.name](*(x[call] for x in given), *integers, **sample.attributes)
        for value, right in zip(got[3 * call :], (2 * np.tanh(want), want, np.ravel(want)), strict=False):
            np.testing.assert_allclose(value, right, rtol=2e-5, atol=2e-6)
