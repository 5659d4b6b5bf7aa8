"""Views of element-wise results become ops on views of their operands."""

import numpy as np

import edbatch as eb


def test_a_view_goes_down_as_many_ops_as_there_are():
    """More than Python's stack has room for."""
    n = 1500

    @eb.cell
    def long(x, z):
        h = x
        for _ in range(n):
            h = h * z + x
        return eb.tanh(h[1:])

    want = np.array([0.01, 0.02, 0.03]) * sum(0.5**k for k in range(n))
    with eb.Graph(policy="sufficient", dtype="float64"):
        x, z = eb.input([0.01, 0.02, 0.03]), eb.input([0.5, 0.5, 0.5])
        y = long(x, z)
        eb.sum(y).backward()
    np.testing.assert_allclose(y.value(), np.tanh(want[1:]), rtol=1e-12)
    np.testing.assert_allclose(x.gradient(), [0, *(2 * (1 - np.tanh(want[1:]) ** 2))], rtol=1e-12)
