"""Compiled cells against their bodies recorded op by op: random cells, arguments from anywhere."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.op import OPS
from edbatch.graph.record import record


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


@pytest.mark.parametrize(("dtype", "width"), [("float32", 4), ("float32", 3), ("float64", 8), ("float64", 7)])
def test_entries_far_apart(dtype, width):
    """NumPy, from 2.2 on, negates wrongly where it reads what is 16 (float32) or 64 bytes apart: arguments, results."""
    op_of = {name: op for name, op in OPS.items() if op.elementwise and op.samples and len(op.samples[0].shapes) == 1}
    names = [name for name in op_of if not op_of[name].payload and not op_of[name].samples[0].attributes]
    assert len(names) > 15
    x = np.linspace(0.1, 0.9, 5 * width).astype(dtype).reshape(5, width)
    for name in names:

        def results(x, op=op_of[name]):
            return record(op, (x[:1],)), x * 2.0

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
