"""What is too large to be numbered is refused by name, and leaves every later graph as it was."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.devices import current_device
from edbatch.memory.plan.pool import BufferPool
from edbatch.runtime import nodes, type_table
from edbatch.runtime.compile.program import Program


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
    "concatenate": lambda: eb.concatenate([eb.zeros(2**30)] * 3),
    "cell": lambda: eb.cell(lambda x: (x * 2, x * 3, x * 4))(eb.zeros(2**30)),
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


def test_what_fails_in_a_table_leaves_it_as_it_was(model, monkeypatch):
    """A type whose program cannot be made, beside another whose parameters have moved."""
    other = eb.ParameterCollection(seed=1)
    a, b = (other.add_parameters((3, 3), name=name) for name in "ab")

    @eb.cell
    def first(x):
        return eb.tanh(a @ x)

    def run(*cells):
        with eb.Graph(policy="sufficient"):
            values = [cell(eb.ones(3)) for cell in cells]
        return eb.forward(values)

    def expected():
        return np.tanh(a.value().sum(1))

    run(first)

    @eb.cell
    def both(x):  # moves `a` into a stack
        return eb.tanh(a @ x) + b @ x

    @eb.cell
    def fails(x):
        return eb.sigmoid(x) * 2

    variant = Program.variant

    def failing(program):
        if any("sigmoid" in str(node.type) for node in program._type.op.body.nodes):
            raise MemoryError
        return variant(program)

    with eb.Graph(policy="sufficient") as graph:
        fails(eb.ones(3))
    graph.typed_graph()  # its type is in the table, its program is not
    run(first)
    with eb.Graph():
        both(eb.ones(3))
    a.set_value(a.value() + 1)
    monkeypatch.setattr(Program, "variant", failing)
    with pytest.raises(MemoryError):
        run(first, fails)
    monkeypatch.undo()
    np.testing.assert_allclose(run(first)[0], expected(), rtol=1e-5)
    values = run(first, fails)
    np.testing.assert_allclose(values[0], expected(), rtol=1e-5)
    np.testing.assert_allclose(values[1], 2 / (1 + np.exp(-np.ones(3))), rtol=1e-5)


def test_views_of_many_windows():
    """Rows of a list that come from as many windows are sorted by them, in time that grows with their number only."""
    values = np.random.default_rng(0).normal(size=1500)
    with eb.Graph(policy="sufficient"):
        x, y = eb.input(values) * 2, eb.input(values[:700]) * 3
        chosen = [x[i] if i % 3 else y[i % 700] for i in range(len(values))]
        total = eb.sum(chosen + chosen[::-1])
    expected = sum(2 * values[i] if i % 3 else 3 * values[i % 700] for i in range(len(values)))
    assert total.value() == pytest.approx(2 * expected, rel=1e-4)


def test_tables_of_many_windows_are_left(monkeypatch):
    device = current_device()
    monkeypatch.setattr(type_table, "MAX_WINDOWS", 1)
    first = type_table.shared_table(device)
    for _ in range(2):
        with eb.Graph(policy="sufficient"):
            x = eb.input([1.0, 2.0, 3.0]) * 2
            y = x[1] + x[2]
        assert y.value() == 10
    assert type_table.shared_table(device) is not first


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
