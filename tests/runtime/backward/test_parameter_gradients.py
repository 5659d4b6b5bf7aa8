"""Gradients of some rows of a parameter: right, and without an array of the parameter's size for each node."""

import tracemalloc

import numpy as np
import pytest

import edbatch as eb


@pytest.mark.cpu
@pytest.mark.parametrize(
    "read",
    ["pick", "pick in a cell", "a row in a cell", "pick of its value", "pick of a slice", "pick of what is computed"],
)
def test_no_node_makes_an_array_of_the_parameters_size(read):
    model = eb.ParameterCollection(seed=0)
    P = model.add_parameters((4096, 64))
    call = {
        "pick": lambda x, i: eb.pick(P, i) * x,
        "pick in a cell": eb.cell(lambda x, i: eb.pick(P, i) * x),
        "a row in a cell": eb.cell(lambda x, i: P[3] * x + P[7:9][1]),
        "pick of its value": lambda x, i: eb.pick(eb.parameter(P), i) * x,
        "pick of a slice": lambda x, i: eb.pick(P[96:], i) * x,
        "pick of what is computed": lambda x, i: eb.pick(computed, i) * x,
    }[read]
    with eb.Graph(policy="sufficient"):
        computed = eb.tanh(P)
        loss = eb.sum([eb.sum(call(eb.ones(64), i)) for i in range(200)])
    loss.value()
    tracemalloc.start()
    loss.backward()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50 * 4096 * 64 * 4  # compiling takes some


@pytest.mark.parametrize("cells", [True, False])
def test_a_matrix_whose_columns_a_split_cell_reads(cells):
    """Of a state and a word: the columns for words are multiplied at once, ahead of the chain."""
    model = eb.ParameterCollection(seed=0, dtype="float64")
    W, table = model.add_parameters((4, 7), name="W"), model.add_lookup_parameters((10, 3), name="table")

    @eb.cell
    def step(h, x):
        return eb.tanh(W @ eb.concatenate([h, x]))

    words, states = [1, 2, 5], [np.zeros(4)]
    for word in words:
        states += [np.tanh(W.value() @ np.concatenate([states[-1], table.value()[word]]))]
    want, of_h = np.zeros((4, 7)), np.ones(4)
    for word, before, after in zip(words[::-1], states[-2::-1], states[:0:-1], strict=True):
        inner = of_h * (1 - after**2)
        want += np.outer(inner, np.concatenate([before, table.value()[word]]))
        of_h = W.value()[:, :4].T @ inner
    with eb.options(cells=cells), eb.Graph(dtype="float64"):
        h = eb.zeros(4)
        for word in words:
            h = step(h, eb.lookup(table, word))
        loss = eb.sum(h)
    (returned,) = eb.gradients(loss, [W])
    np.testing.assert_allclose(returned, want)
    loss.backward()
    assert W.has_grad
    np.testing.assert_allclose(W.grad(), want)
    eb.SGD(model, lr=1.0).update()
    assert not W.has_grad
