"""Policies that users write: a schedule that is wrong is one clear error, never a wrong value."""

import numpy as np
import pytest

import edbatch as eb
from edbatch.policy import Schedule, get_policy


class Mine:
    """Changes what `sufficient` does."""

    name = "mine"

    def __init__(self, change):
        self.change = change

    def schedule(self, graph):
        right = get_policy("sufficient").schedule(graph)
        return self.change(right.order.copy(), right.offsets.copy(), right.types.copy())

    def save(self, path):
        raise NotImplementedError


def graph_with(policy):
    with eb.Graph(policy=policy) as graph:
        xs = [eb.tanh(eb.input([float(n)])) for n in range(4)]
        total = eb.sum([eb.exp(x) for x in xs])
    return graph, total


def swapped(order, offsets, types):
    order[[0, -1]] = order[[-1, 0]]
    return Schedule(order, offsets, types)


WRONG = {
    "nothing": (lambda *_: None, "expected a Schedule, got NoneType"),
    "arrays": (lambda *given: given, "expected a Schedule, got tuple"),
    "lists": (lambda o, f, t: Schedule(o.tolist(), f, t), "order: expected a list of integers as an array, got list"),
    "floats": (lambda o, f, t: Schedule(o * 1.0, f, t), "order: expected a list of integers as an array, got float64"),
    "matrix": (lambda o, f, t: Schedule(o[None], f, t), "order: expected a list of integers as an array, got int32"),
    "missing node": (lambda o, f, t: Schedule(o[:-1], f, t), "order must hold each of the 9 nodes once"),
    "node twice": (lambda o, f, t: Schedule(np.append(o[:-1], o[0]), f, t), "order must hold each of the 9 nodes once"),
    "no such node": (lambda o, f, t: Schedule(np.append(o[:-1], 99), f, t), "order must hold each of the 9 nodes once"),
    "reversed": (lambda o, f, t: Schedule(o[::-1], f, t), "node"),
    "swapped": (swapped, "has another type"),
    "offsets": (lambda o, f, t: Schedule(o, f + 1, t), "offsets must have 4 entries from 0 to 9"),
    "no offsets": (lambda o, f, t: Schedule(o, f[:0], t), "offsets must have 4 entries from 0 to 9"),
    "offsets go back": (lambda o, f, t: Schedule(o, f[[0, 2, 1, 3]], t), "batch 1 is empty"),
    "unsigned offsets go back": (lambda o, f, t: Schedule(o, f[[0, 2, 1, 3]].astype("u4"), t), "batch 1 is empty"),
    "types": (lambda o, f, t: Schedule(o, f, t[::-1]), "has another type"),
    "types missing": (lambda o, f, t: Schedule(o, f, t[:-1]), "offsets must have 3 entries"),
    "users first": (
        lambda o, f, t: Schedule(np.concatenate([o[4:8], o[:4], o[8:]]), f, t[[1, 0, 2]]),
        "runs before its operand",
    ),
}


@pytest.mark.parametrize(("change", "message"), WRONG.values(), ids=WRONG)
def test_wrong_schedules(change, message):
    graph, total = graph_with(Mine(change))
    with pytest.raises(eb.EdBatchError, match=f"policy 'mine': .*{message}"):
        graph.run()
    with pytest.raises(eb.EdBatchError, match="this graph has no values"):
        total.value()


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8])
def test_right_schedules_of_any_integers(dtype):
    graph, total = graph_with(Mine(lambda *given: Schedule(*(x.astype(dtype) for x in given))))
    np.testing.assert_allclose(total.value(), [np.exp(np.tanh(np.arange(4))).sum()], rtol=1e-6)
    assert graph.report().policy == "mine"


def test_a_policy_needs_no_name():
    class Nameless:
        def schedule(self, graph):
            return get_policy("depth").schedule(graph)

    graph, total = graph_with(Nameless())
    assert total.value().shape == (1,)
    assert graph.report().policy == "Nameless"


def emptied(graph):
    graph.operands, graph.indptr = graph.operands[:0], graph.indptr * 0


@pytest.mark.parametrize("write", [lambda graph: graph.operands.fill(0), lambda graph: graph.types.fill(0), emptied])
def test_a_policy_that_writes_into_the_graph_changes_nothing(write):
    class Writing:
        name = "writing"

        def schedule(self, graph):
            schedule = get_policy("depth").schedule(graph)
            write(graph)
            return schedule

    _, total = graph_with(Writing())
    assert total.value() == graph_with("depth")[1].value()


@pytest.mark.parametrize("ask", [lambda x: x.value(), lambda x: eb.forward([x]), float, lambda x: x.backward()])
def test_a_policy_that_asks_for_a_value_of_the_graph_that_it_schedules(ask):
    class Asking:
        name = "asking"

        def schedule(self, graph):
            ask(x)
            return get_policy("depth").schedule(graph)

    with eb.Graph(policy=Asking()):
        x = eb.tanh(eb.scalar(1))
        y = eb.exp(x)
    with pytest.raises(eb.EdBatchError, match=r"^policy 'asking': asks for a value of the graph that it is scheduling"):
        y.value()
