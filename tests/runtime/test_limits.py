"""What is too large to be numbered is refused by name, and leaves every later graph as it was."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.memory.plan.pool import BufferPool
from edbatch.runtime import nodes, type_table


def step(model):
    """A graph that goes through compiled loops, and back."""
    with eb.Graph(policy="sufficient"):
        W = model["W"]
        loss = eb.sum([eb.sum(eb.tanh(W @ eb.input(np.full(3, n)))) for n in range(3)])
    model.zero_grad()
    loss.backward()
    return loss.value(), W.grad().copy()


@pytest.fixture
def model():
    model = eb.ParameterCollection(seed=0)
    model.add_parameters((2, 3), name="W")
    return model


CASES = {
    "zeros": lambda: eb.zeros((2**40, 2**40)),
    "ones": lambda: eb.ones(2**31),
    "zeros of 2**64 entries, which are none in 64 bits": lambda: eb.zeros((2**32, 2**32)),
    "product": lambda: eb.zeros((2**20, 1)) @ eb.zeros((1, 2**20)),
    "broadcast": lambda: eb.zeros((2**20, 1)) + eb.zeros((1, 2**20)),
    "cell": lambda: eb.cell(lambda x: [x @ (x.T * k) for k in (1.0, 2.0, 3.0)])(eb.zeros((2**15, 1))),
}


@pytest.mark.parametrize("make", CASES.values(), ids=CASES)
def test_values_that_are_too_large(model, make):
    before = step(model)
    types = type_table.TYPES.made
    with eb.Graph(policy="sufficient") as graph:
        x = eb.ones(3) * 2
        with pytest.raises(eb.EdBatchError, match=r"expected at most 2,147,483,647 (in all|entries along an axis)"):
            make()
    graph.run()
    np.testing.assert_array_equal(x.value(), [2, 2, 2])
    assert all(type.out.size < 2**31 for id, type in type_table.TYPES.items() if id >= types)
    after = step(model)
    assert after[0] == before[0]
    np.testing.assert_array_equal(after[1], before[1])


def test_parameters_that_are_too_long(model):
    with pytest.raises(eb.EdBatchError, match=r"'table': expected at most 2,147,483,647 entries along an axis"):
        model.add_lookup_parameters((2**31, 1), name="table", init=0.0)
    assert "table" not in [parameter.name for parameter in model]


def test_graphs_that_are_too_large(model, monkeypatch):
    before = step(model)
    monkeypatch.setattr(nodes, "MOST", 50)
    with eb.Graph(policy="sufficient") as graph:
        x = eb.ones(3)
        for _ in range(30):
            x = eb.tanh(x)
    with pytest.raises(eb.EdBatchError, match="31 nodes with 30 operands: expected at most 50 together"):
        graph.run()
    monkeypatch.undo()
    after = step(model)
    assert after[0] == before[0]


def test_more_axes_than_there_may_be(model):
    most = (1,) * 31
    with eb.Graph(policy="sufficient"):
        x = eb.ones(most)
        y = eb.tanh(x) + 1
        for make in (
            lambda: eb.zeros((1, *most)), lambda: eb.unsqueeze(x, 0), lambda: eb.reshape(x, (1,) * 70),
            lambda: eb.input(np.ones((1,) * 40)), lambda: eb.stack([x, x]),
        ):  # fmt: skip
            with pytest.raises(eb.EdBatchError, match=r"a value of \d+ axes: expected at most 31"):
                make()
    assert y.value().shape == most
    with pytest.raises(eb.EdBatchError, match="parameter 'p1': expected a shape of at most 31 axes"):
        model.add_parameters((1,) * 70, init=0.0)
    assert len(model) == 1


def test_a_graph_that_memory_does_not_hold(model, monkeypatch):
    """An error of ours that is Python's, too; what is next runs."""
    before = step(model)

    def refuse(self, entries, dtype):
        raise MemoryError("Unable to allocate 8 GiB")

    expected = r"this graph needs more memory than there is \(Unable to allocate 8 GiB\); expected smaller mini-batches"
    with eb.Graph(policy="sufficient") as graph:
        loss = eb.sum(eb.tanh(model["W"] @ eb.ones(3)))
    monkeypatch.setattr(BufferPool, "acquire", refuse)
    for kind in (eb.EdBatchError, MemoryError):
        with eb.Graph(policy="sufficient"), pytest.raises(kind, match=expected) as found:
            eb.tanh(eb.ones(3001)).value()  # there is room for what graphs before this had
        assert found.value.__suppress_context__
    monkeypatch.undo()
    graph.run()
    monkeypatch.setattr(BufferPool, "acquire", refuse)
    with pytest.raises(eb.EdBatchError, match=expected):
        loss.backward()
    monkeypatch.undo()
    after = step(model)
    assert after[0] == before[0]
    np.testing.assert_array_equal(after[1], before[1])
