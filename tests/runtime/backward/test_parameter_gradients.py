"""Gradients of some rows of a parameter: right, and without an array of the parameter's size for each node."""

import tracemalloc

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
