"""Products with concatenations are split by columns of the matrix, whose parts stay views of it."""

import gc

import numpy as np
import pytest

import edbatch as eb
from edbatch.graph.cell.stacking import column_range, stacked


class LSTM:
    """As many write it: the gates' weights side by side, input and state concatenated."""

    def __init__(self, dim, dtype, order="hx"):
        model = self.model = eb.ParameterCollection(seed=3, dtype=dtype)
        self.W = [model.add_parameters((dim, 2 * dim + 1), name=f"W{gate}") for gate in "ifou"]
        self.b = [model.add_parameters((dim,), name=f"b{gate}", init="uniform") for gate in "ifou"]
        self.out = model.add_parameters((dim, 2 * dim), name="out")
        self.table = model.add_lookup_parameters((9, dim), name="table", init="glorot")
        self.order, self.dim = order, dim

    @eb.cell
    def step(self, one, word: int, h, c):
        x = eb.lookup(self.table, word)
        e = eb.concatenate([{"h": h, "x": x, "1": one}[name] for name in self.order])
        i, f, o, u = (W @ e + b for W, b in zip(self.W, self.b, strict=True))
        c = eb.sigmoid(f) * c + eb.sigmoid(i) * eb.tanh(u)
        h = eb.sigmoid(o) * eb.tanh(c)
        return h, c, eb.softmax(self.out @ eb.concatenate([x, h]))

    def chains(self):
        out = []
        for length in (5, 2, 4):
            h = c = eb.ones(self.dim)
            for word in range(length):
                h, c, p = self.step(eb.input([word]), word, h, c)
                out += [h, c, p]
        return out


def run(lstm, dtype, **options):
    with eb.options(**options), eb.Graph(policy="sufficient", dtype=dtype) as graph:
        return eb.forward(lstm.chains()), graph


@pytest.mark.parametrize("order", ["h1x", "1hx", "x1h"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("compile", ["full", "plain"])
def test_a_product_with_input_and_state_is_early_for_the_input(order, dtype, compile):
    lstm = LSTM(4, dtype, order)
    tolerance = {"float32": 1e-5, "float64": 1e-12}[dtype]
    for _ in range(2):
        got, graph = run(lstm, dtype, compile=compile)
        want, _ = run(lstm, dtype, cells=False)
        np.testing.assert_allclose(np.concatenate(got), np.concatenate(want), rtol=tolerance, atol=tolerance)
        assert graph.report().batches == graph.report().lower_bound == 1 + 5 + 1
        lstm.W[2].set_value(lstm.W[2].value() + 1)  # its columns are views of it
    early = next(name for name in graph.typed_graph().names if "eager" in name)
    assert early.startswith("LSTM.step (eager one, word)")


@pytest.mark.cpu
def test_columns_are_seen_where_their_matrix_is_moved():
    model = eb.ParameterCollection(seed=0)
    A, B = model.add_parameters((2, 3), name="A"), model.add_parameters((1, 3), name="B")
    spec = column_range(A.spec, 1, 3)
    assert column_range(A.spec, 1, 3) is spec
    assert repr(spec) == "A[:,1:3][2,2]"
    before = spec.parameter().array
    assert spec.parameter().array is before
    np.testing.assert_array_equal(before, A.value()[:, 1:])
    stacked([B.spec, A.spec])
    A.set_value(np.arange(6).reshape(2, 3))
    np.testing.assert_array_equal(spec.parameter().array, [[1, 2], [4, 5]])
    del model, A, B, before
    gc.collect()
    assert spec.parameter() is None


def test_column_range_a_deleted_matrix():
    spec = eb.ParameterCollection().add_parameters((2, 3), name="A").spec
    gc.collect()
    with pytest.raises(eb.EdBatchError, match=r"A\[2,3\] was deleted"):
        column_range(spec, 0, 1)
