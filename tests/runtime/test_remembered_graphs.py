"""A small graph that is recorded again has the plan that it had, and gradients go back by the way that they went."""

import gc
from weakref import ref

import numpy as np
import pytest

import edbatch as eb
from edbatch.runtime import remembered, type_table
from edbatch.runtime.backward import backward as backwards
from edbatch.runtime.remembered import Plans

DIM = 3


class Net:
    def __init__(self):
        self.model = eb.ParameterCollection(seed=0, dtype="float64")
        self.W = self.model.add_parameters((DIM, DIM), name="W")
        self.V = self.model.add_parameters((DIM, DIM), name="V")
        self.b = self.model.add_parameters(DIM, name="b")
        self.table = self.model.add_lookup_parameters((9, DIM), name="table")

    @eb.cell
    def step(self, h, word: int):
        return eb.tanh(self.W @ h + eb.lookup(self.table, word) + self.b)

    def encoded(self, x, words):
        h = eb.tanh(self.V @ x)
        for word in words:
            h = self.step(h, word)
        return h

    def gradients(self):
        found = [parameter.grad() for parameter in self.model]
        self.model.zero_grad()
        return found


@pytest.fixture
def plans(monkeypatch, nothing_learned):
    own = Plans()
    monkeypatch.setattr(remembered, "of_graphs", own)
    monkeypatch.setattr(remembered.of_structures, "is_open", False)
    return own


@pytest.fixture
def planned(monkeypatch):
    """How many ways back were planned since it was asked last."""
    made = []
    plan = backwards.planned
    monkeypatch.setattr(backwards, "planned", lambda *given: made.append(1) or plan(*given))

    def count():
        n = len(made)
        del made[:]
        return n

    return count


def anew(function):
    """What a function computes when nothing is remembered."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remembered, "MOST_NODES", 0)
        return function()


def check(function, times=3):
    """What is computed again and again is what it is anew."""
    wanted = anew(function)
    for _ in range(times):
        for one, other in zip(function(), wanted, strict=True):
            np.testing.assert_array_equal(one, other)


SAMPLES = [(1, 2, 3), (4,), (5, 5, 1)]


def whole(net, values, words=SAMPLES, saving=False, after=()):
    with eb.Graph("sufficient", "float64") as graph:
        xs = [eb.input(value) for value in values]
        hs = [net.encoded(x, some) for x, some in zip(xs, words, strict=True)]
        loss = eb.sum([eb.sum(h * h) for h in hs])
        found = [] if saving else eb.forward(hs)
        loss.backward()
        found += [loss.value(), xs[0].gradient(), hs[1].gradient(), *net.gradients()]
        for more in after:
            found += more(graph, net, hs)
    return [*found, graph.report().batches, graph.report().lower_bound]


def values(seed=0):
    return np.random.default_rng(seed).normal(size=(len(SAMPLES), DIM))


@pytest.mark.parametrize("saving", [False, True])
def test_it_is_planned_once(plans, planned, saving):
    net = Net()
    for seed in range(4):
        check(lambda seed=seed: whole(net, values(seed), saving=saving), 1)
        # Two ways, one for inputs, each planned once anew, once while nothing was known, and once to be kept.
        assert planned() == (2 + 2 if seed < 2 else 2)
        assert plans.hits == seed
        net.W.set_value(net.W.value() * 1.1)


def test_what_is_else_is_planned_anew(plans, planned):
    net = Net()
    check(lambda: whole(net, values()))
    hits = plans.hits
    for words in ([(1, 2, 3), (4,), (5, 5, 2)], [(1, 2, 3), (4,)], [(4,), (1, 2, 3), (5, 5, 1)]):
        check(lambda words=words: whole(net, values()[: len(words)], words), 1)
    assert plans.hits == hits
    check(lambda: whole(net, values()), 1)
    assert plans.hits == hits + 1


def scaled(graph, net, hs):
    (hs[0] + hs[2]).value()
    loss = eb.sum(net.step(hs[2], 7) * hs[1])
    loss.backward()
    return [loss.value(), hs[0].gradient(), *net.gradients()]


def again(graph, net, hs):
    eb.sum(hs[1]).backward()
    return [hs[1].gradient(), *net.gradients()]


def typed(graph, net, hs):
    types = graph.typed_graph()
    return [len(types), types.operands, repr(graph) and 0]


def test_a_way_is_of_its_root(plans, planned):
    net = Net()

    def of(root):
        with eb.Graph(dtype="float64"):
            x = eb.input(np.arange(1.0, DIM + 1))
            roots = eb.sum(net.b * x), eb.sum(eb.square(net.b) * x)
            total = eb.add(*roots)
        total.value()
        roots[root].backward()
        return net.gradients()[2]

    net.b.set_value([1.0, 2.0, 3.0])
    for known in (False, False, True):
        for root in (0, 1):
            np.testing.assert_array_equal(of(root), np.arange(1.0, DIM + 1) * [1, 2 * net.b.value()][root])
        assert bool(planned()) != known


def test_graphs_go_on(plans):
    net = Net()
    for after in ([scaled], [again, again], [typed, scaled, typed, again], [again, scaled]):
        check(lambda after=after: whole(net, values(), after=after))
    assert plans.hits > 8


def test_gradients_that_are_asked_for_after_the_graph_has_grown(plans):
    net = Net()

    def run():
        with eb.Graph("sufficient", "float64"):
            x = eb.input(values()[0])
            h = net.encoded(x, (1, 2))
            h.value()
            eb.sum(h).backward()
            more = eb.sum(net.encoded(h, (3,)))
            more.value()
            return [x.gradient(), h.gradient(), more.value(), *net.gradients()]

    check(run)


def test_two_graphs_at_a_time(plans):
    net = Net()

    def run():
        graphs = []
        for value in values():
            with eb.Graph("sufficient", "float64"):
                h = net.encoded(eb.input(value), (1, 2))
                graphs.append((h, eb.sum(h * h)))
        for _, loss in graphs:
            loss.value()
        for _, loss in graphs:
            loss.backward()
        more = [(h + 1).value() for h, _ in graphs]
        return [*more, *(h.gradient() for h, _ in graphs), *net.gradients()]

    check(run)


def test_windows_and_programs_that_come_later(plans, planned):
    net = Net()
    check(lambda: whole(net, values()), 2)
    planned()

    def other(n):
        with eb.Graph(dtype="float64"):
            x = eb.input(np.ones(n))
            loss = eb.sum(eb.exp(x[1:n]) / n)
        loss.backward()
        return [loss.value(), x.gradient()]

    for n in (17, 18):
        check(lambda n=n: other(n), 1)
        check(lambda: whole(net, values()), 2)


def test_parameters_that_are_moved_into_a_stack(plans):
    net = Net()
    U = net.model.add_parameters((DIM, DIM), name="U")

    def run():
        with eb.Graph(dtype="float64"):
            loss = eb.sum(net.V @ eb.input(values()[0]))
        loss.value()
        loss.backward()
        return [loss.value(), *net.gradients()]

    @eb.cell
    def both(x):
        return eb.sigmoid(net.V @ x) * eb.tanh(U @ x)

    check(run)
    with eb.Graph(dtype="float64"):
        both(eb.input(values()[0])).value()
    assert net.V.stack is not None
    check(run)


def test_parameters_that_were_written_to(plans):
    net = Net()
    for _ in range(3):
        with eb.Graph(dtype="float64"):
            loss = eb.sum(eb.tanh(net.V @ eb.tanh(net.V @ eb.input(values()[0]))))
        loss.value()
        net.V.set_value(net.V.value())
        with pytest.raises(eb.EdBatchError, match="V changed after the graph had run"):
            loss.backward()


def test_frozen_parameters(plans):
    net = Net()
    for frozen in (False, True, False):
        net.W.freeze(frozen)
        check(lambda: whole(net, values()), 2)


def test_masks(plans):
    net = Net()

    def run(seed):
        with eb.Graph(dtype="float64", seed=seed):
            h = eb.dropout(net.V @ eb.input(values()[0]), 0.5)
            eb.sum(h).backward()
            return [h.value(), *net.gradients()]

    for seed in (1, 2, 1, 2):
        check(lambda seed=seed: run(seed), 1)


def test_nan_is_found_again(plans):
    for _ in range(3):
        with eb.options(trace_lines=True), eb.Graph(check_nan=True):
            y = eb.log(eb.scalar(-1.0))
            with pytest.raises(eb.EdBatchError, match=__file__):
                y.value()
        with eb.options(trace_lines=True), eb.Graph(check_nan=True):
            x = eb.scalar(0.0)
            y = eb.sum(eb.sqrt(x) * x)
            y.backward()
            with pytest.raises(eb.EdBatchError, match=__file__), np.errstate(all="ignore"):
                x.gradient()


def test_a_new_table_of_types(plans, monkeypatch):
    net = Net()
    monkeypatch.setattr(type_table, "_shared", _shared := {})
    check(lambda: whole(net, values()))
    before = ref(next(iter(_shared.values())))
    monkeypatch.setattr(type_table, "MAX_TYPES", 0)
    check(lambda: whole(net, values()), 1)
    monkeypatch.undo()
    gc.collect()
    assert before() is None  # what is remembered does not hold it
    check(lambda: whole(net, values()), 1)


def test_memory_is_bounded(plans, monkeypatch):
    plans._most = 100_000
    monkeypatch.setattr(remembered, "MOST_WAYS", 2)
    net = Net()
    for _ in range(2):
        for word in range(9):
            for _ in range(3):
                whole(net, values(), [(word,), (1,), (2,)], after=[again])
                assert plans.bytes == sum(one.bytes for one in plans._plans.values()) <= 100_000
                assert all(len(one.ways) <= 2 for one in plans._plans.values())
    assert plans.hits > 20


def test_large_graphs_are_not_gone_through(plans, monkeypatch):
    monkeypatch.setattr(remembered, "MOST_NODES", 10)
    net = Net()
    check(lambda: whole(net, values()))
    assert not plans.hits
    assert not plans._plans


def test_who_measures_sees_small_graphs_as_new_ones(monkeypatch):
    monkeypatch.setattr(remembered, "of_graphs", plans := Plans())

    def run():
        with eb.Graph(policy="sufficient"):
            y = [eb.tanh(eb.ones(3)) * k for k in range(20)]
        eb.forward(y)
        return plans.hits

    assert [run(), run()] == [0, 1]
    with remembered.afresh():
        assert [run(), run()] == [1, 1]
    assert run() == 2
