"""Fused kernels, generated from the op table: the numbers of the ops one by one, wherever operands lie."""

import os
import subprocess
import sys

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.node_type import node_type
from edbatch.graph.op import OPS
from tests.oracle import ORACLE

FUSED = [op for op in OPS.values() if op.scalar and not op.payload]


def test_every_element_wise_op_is_fused():
    assert {op.name for op in OPS.values() if op.elementwise} == {op.name for op in FUSED}


def record(op, attributes, operands):
    """One node of an op in the graph that the operands belong to."""
    graph = operands[0].graph
    type = node_type(op, tuple(attributes.items()), tuple(x.spec for x in operands))
    return graph.add(type, [x.id for x in operands])


@pytest.mark.parametrize("compile", ["full", "plain"])
def test_every_op_of_the_table(compile):
    """One cell with all ops and samples in it: a kernel for each size."""
    random = np.random.default_rng(0)
    cases = [(op, sample) for op in FUSED for sample in op.samples]
    values = [
        [np.asarray(random.uniform(sample.low, sample.high, (7, *shape)), np.float32) for shape in sample.shapes]
        for _, sample in cases
    ]

    @eb.cell
    def everything(*xs):
        at, out = 0, []
        for op, sample in cases:
            y = record(op, sample.attributes, xs[at : at + len(sample.shapes)])
            at += len(sample.shapes)
            out += [y, y * y]  # a result that is read again
        return out

    with eb.options(compile=compile), eb.Graph(policy="sufficient") as graph:
        nodes = []
        for call in range(7):
            nodes += everything(*[eb.input(x[call]) for columns in values for x in columns])
        got = eb.forward(nodes)
    assert graph.report().batches == 1
    per_call = 2 * len(cases)
    for call in range(7):
        for number, (op, sample) in enumerate(cases):
            inputs = [x[call].astype(np.float64) for x in values[number]]
            want = ORACLE[op.name](*inputs, **sample.attributes)
            value, squared = got[call * per_call + 2 * number : call * per_call + 2 * number + 2]
            np.testing.assert_allclose(value, want, rtol=3e-6, atol=3e-7, err_msg=op.name)
            np.testing.assert_allclose(squared, want * want, rtol=6e-6, atol=1e-6, err_msg=op.name)


def gates(width):
    """A TreeLSTM's cell with its sigmoids side by side, on arguments that come as views, shared or gathered."""

    @eb.cell
    def cell(g, c1, c2):
        side, u = eb.split(g, (4 * width, width))
        i, o, f1, f2 = eb.split(eb.sigmoid(side), 4)
        c = i * eb.tanh(u) + f1 * c1 + f2 * c2
        return o * eb.tanh(c), c, eb.maximum(c, 0) - 0.5

    return cell


@pytest.mark.parametrize("width", [1, 3, 64])
@pytest.mark.parametrize("calls", [1, 5, 400])
def test_gates(width, calls):
    random = np.random.default_rng(1)
    g = random.standard_normal((calls, 5 * width)).astype(np.float32)
    c = random.standard_normal((calls, 2 * width)).astype(np.float32)
    cell = gates(width)
    results = []
    for options in ({}, {"compile": "plain"}, {"cells": False}):
        with eb.options(**options), eb.Graph(policy="sufficient"):
            shared = eb.input(c[0, :width])
            out = []
            for k in random.permutation(calls) if options == {} else range(calls):
                both = eb.input(c[k])
                h, new, other = cell(eb.input(g[k]), shared, both[width:])
                out.append((k, eb.concatenate([h, new, other])))
            values = eb.forward([x for _, x in sorted(out, key=lambda pair: pair[0])])
        results.append(np.array(values))
    np.testing.assert_allclose(results[0], results[2], rtol=2e-6, atol=1e-6)
    np.testing.assert_allclose(results[1], results[2], rtol=2e-6, atol=1e-6)


def test_parameters_numbers_and_nan():
    model = eb.ParameterCollection()
    b = model.add_parameters((3,), init=[1.0, 2.0, 3.0])
    s = model.add_parameters((), init=2.0)

    @eb.cell
    def cell(x):
        return eb.tanh(x * s + b) / 4 + eb.ones(3)

    with eb.Graph(policy="sufficient"):
        got = eb.forward([cell(eb.input([0.0, float("nan"), -1.0])), cell(eb.input([1.0, 0.5, 9.0]))])
    want = np.tanh(np.array([[0, np.nan, -1], [1, 0.5, 9]]) * 2 + [1, 2, 3]) / 4 + 1
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_attributes_may_be_infinite():
    @eb.cell
    def cell(x):
        return eb.clip(x, float("-inf"), 1) * 2

    with eb.Graph(policy="sufficient"):
        np.testing.assert_array_equal(cell(eb.input([-9.0, 0.5, 3.0])).value(), [-18, 1, 2])


def test_float64_is_not_fused_and_exact():
    cell = gates(4)
    random = np.random.default_rng(0)
    g, c = random.standard_normal(20), random.standard_normal(4)
    values = []
    for cells in (True, False):
        with eb.options(cells=cells), eb.Graph(policy="sufficient", dtype="float64"):
            values.append(eb.forward(cell(eb.input(g), eb.input(c), eb.zeros(4))))
    np.testing.assert_allclose(values[0], values[1], rtol=1e-14)


@pytest.mark.cpu  # another process
@pytest.mark.parametrize("writable", [True, False])
def test_kernels_are_kept_in_the_users_cache(tmp_path, writable):
    if not writable:
        (tmp_path / "edbatch").write_text("a file where the folder should be")
    code = (
        "import edbatch as eb\n"
        "@eb.cell\n"
        "def cell(x): return eb.tanh(x) * 1.25 + 0.5\n"
        "with eb.Graph(policy='sufficient'): print(cell(eb.zeros(2)).value()[0])\n"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    assert (done.stdout, done.returncode) == ("0.5\n", 0)
    assert ("EdBatchWarning" in done.stderr) == (not writable)
    assert bool(list(tmp_path.glob("edbatch/compiled/*.bin"))) == writable
