"""Graphs that come again, as they were or with other words, have the numbers that they have anew."""

import gc
import random
from itertools import permutations
from weakref import ref

import numpy as np
import pytest

import edbatch as eb
from edbatch.runtime import evaluation, plan_cache, type_table
from edbatch.runtime.backward import backward
from edbatch.runtime.plan_cache import PlanCache

DIM = 3
LENGTHS = (3, 1, 4, 3)


class Net:
    def __init__(self):
        self.model = eb.ParameterCollection(seed=0, dtype="float64")
        self.W, self.V = (self.model.add_parameters((DIM, DIM), name=name) for name in "WV")
        self.b = self.model.add_parameters(DIM, name="b")
        self.table = self.model.add_lookup_parameters((9, DIM), name="table")

    @eb.cell
    def step(self, h, word: int):
        return eb.tanh(self.W @ h + eb.lookup(self.table, word) + self.b)

    @eb.cell
    def read(self, h, label: int):
        return h * 2, eb.cross_entropy(self.V @ h, label)

    def of_ops(self, words):
        h = eb.zeros(DIM)
        for word in words:
            h = eb.dropout(eb.tanh(self.W @ h + eb.lookup(self.table, word)), 0.3)
        return eb.cross_entropy(self.V @ h, words[0] % DIM)

    def of_cells(self, words):
        h, losses = eb.lookup(self.table, words[-1]), []
        for word in words:
            h = self.step(h, word)
            h, loss = self.read(h, word % DIM)
            losses.append(loss)
        return eb.sum(losses)

    def of_some(self, words):
        hs = [self.step(eb.lookup(self.table, word), word) for word in words]
        stopped = [eb.stop_gradient(h) if at % 2 else h for at, h in enumerate(hs)]
        return eb.sum([eb.cross_entropy(h, word % DIM) for h, word in zip(stopped, words, strict=True)])

    def gradients(self):
        found = [parameter.grad() for parameter in self.model]
        self.model.zero_grad()
        return found


@pytest.fixture(autouse=True)
def plans(monkeypatch):
    """A plan cache that is new."""
    own = PlanCache()
    for module, name in ((plan_cache, "plans"), (evaluation, "plans"), (backward, "plan_cache")):
        monkeypatch.setattr(module, name, own)
    return own


def check(function, times=1):
    """What is computed is, to the bit, what it is anew."""
    with plan_cache.afresh():
        wanted = function()
    for _ in range(times):
        for one, other in zip(function(), wanted, strict=True):
            np.testing.assert_array_equal(one, other)


def mini_batch(seed, lengths=LENGTHS):
    rng = random.Random(seed)
    return [[rng.randrange(9) for _ in range(length)] for length in lengths]


def whole(net, function, samples, saving=False, policy="sufficient", after=()):
    with eb.Graph(policy, "float64", seed=samples[0][0]) as graph:
        losses = [function(net, words) for words in samples]
        loss = eb.sum(losses)
        found = [] if saving else eb.forward(losses)
        loss.backward()
        found += [loss.value(), losses[0].gradient(), *net.gradients()]
        for more in after:
            found += more(net, losses)
    report = graph.report()
    return [*found, report.nodes, report.edges, report.batches, report.lower_bound]


FUNCTIONS = [Net.of_ops, Net.of_cells, Net.of_some]


@pytest.mark.parametrize(("policy", "saving"), [("sufficient", False), (None, True)])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_other_words(plans, function, saving, policy):
    net = Net()
    for seed in range(5):
        check(lambda seed=seed: whole(net, function, mini_batch(seed), saving, policy))
        net.W.set_value(net.W.value() * 1.1)
    assert plans.hits >= 3


@pytest.mark.parametrize("structures", [True, False])
def test_what_is_else_is_planned_anew(plans, monkeypatch, structures):
    monkeypatch.setattr(plans, "is_open", structures)
    net = Net()
    words = [(1, 2, 3), (4,), (5, 5, 1)]
    check(lambda: whole(net, Net.of_cells, words), 3)
    for others in ([(1, 2, 3), (4,), (5, 5, 2)], words[:2], words[1:] + words[:1], [(1, 1, 1), (1,), (1, 1, 1)], words):
        for function in FUNCTIONS:
            check(lambda others=others, function=function: whole(net, function, others), 3)
    for policy in ("agenda", "depth", "none"):
        check(lambda policy=policy: whole(net, Net.of_cells, words, policy=policy), 2)
    for options in ({"split": False}, {"recompute": True}, {"cells": False}, {"profile": True}):
        with eb.options(**options):
            check(lambda: whole(net, Net.of_cells, words), 3)
    net.b.freeze()
    check(lambda: whole(net, Net.of_cells, words), 3)
    net.b.freeze(False)
    net.W = net.model.add_parameters((DIM, DIM), name="other")
    check(lambda: whole(net, Net.of_cells, words), 3)


@pytest.mark.parametrize("n", [1, 40])
def test_other_edges(plans, n):
    """Graphs of equal types are told apart by who reads whom."""

    def run(first, second, third):
        with eb.Graph(dtype="float64"):
            xs = [eb.input(np.arange(DIM) + 10.0 * at) for at in range(3)]
            y = [(xs[first] - xs[second]) * xs[third] for _ in range(n)]
            return [eb.sum(y).value()]

    for places in permutations(range(3)):
        check(lambda places=places: run(*places), 3)
    assert plans.hits >= 6


def test_a_way_is_of_its_root():
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
    for _ in range(3):
        for root in (0, 1):
            np.testing.assert_array_equal(of(root), np.arange(1.0, DIM + 1) * [1, 2 * net.b.value()][root])


def test_a_graph_that_ran_before_the_backward_plan_was_cached():
    net = Net()

    def opened():
        with eb.Graph(dtype="float64"):
            loss = eb.sum([net.of_cells(words) for words in mini_batch(0)])
            loss.value()
        return loss

    graphs = [opened() for _ in range(4)]
    graphs.pop().backward()  # its plan has rows of which the others know nothing
    wanted = net.gradients()
    for loss in graphs:
        loss.backward()
        for one, other in zip(net.gradients(), wanted, strict=True):
            np.testing.assert_array_equal(one, other)


def grown(net, losses):
    more = eb.sum([net.of_cells([1, 2]) * losses[0], net.of_ops([4, 4, 4])])
    more.backward()
    return [more.value(), losses[0].gradient(), *net.gradients()]


def again(net, losses):
    losses[1].backward()
    return [losses[1].gradient(), losses[2].gradient(), *net.gradients()]


@pytest.mark.parametrize("after", [[again, again], [again, grown, again], [grown, grown]])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_graphs_go_on(function, after):
    net = Net()
    for seed in (0, 0, 1, 2, 3):
        check(lambda seed=seed: whole(net, function, mini_batch(seed), after=after))


def test_parameters_that_are_moved_into_a_stack_or_written_to():
    net = Net()
    U = net.model.add_parameters((DIM, DIM), name="U")

    def recorded():
        with eb.Graph(dtype="float64"):
            return eb.sum(eb.tanh(net.V @ eb.tanh(net.V @ eb.ones(DIM))))

    def run():
        loss = recorded()
        loss.value()
        loss.backward()
        return [loss.value(), *net.gradients()]

    check(run, 3)
    with eb.Graph(dtype="float64"):
        eb.cell(lambda x: eb.sigmoid(net.V @ x) * eb.tanh(U @ x))(eb.ones(DIM)).value()
    check(run, 3)
    for _ in range(3):
        loss = recorded()
        loss.value()
        net.V.set_value(net.V.value())
        with pytest.raises(eb.EdBatchError, match="V changed after the graph had run"):
            loss.backward()


def test_nan_is_found_again():
    def raises():
        return pytest.raises(eb.EdBatchError, match=__file__)

    for _ in range(3):
        with eb.options(trace_lines=True), eb.Graph(check_nan=True), np.errstate(all="ignore"):
            y = eb.log(eb.scalar(-1.0))
            with raises():
                y.value()
        with eb.options(trace_lines=True), eb.Graph(check_nan=True), np.errstate(all="ignore"):
            x = eb.scalar(0.0)
            eb.sum(eb.sqrt(x) * x).backward()
            with raises():
                x.gradient()


def test_a_new_table_of_types(monkeypatch):
    net = Net()
    monkeypatch.setattr(type_table, "_shared", shared := {})
    check(lambda: whole(net, Net.of_cells, mini_batch(0)), 3)
    before = ref(next(iter(shared.values())))
    monkeypatch.setattr(type_table, "MAX_TYPES", 0)
    check(lambda: whole(net, Net.of_cells, mini_batch(0)))
    gc.collect()
    assert before() is None  # what is remembered does not hold it


def test_memory_is_bounded(plans, monkeypatch):
    plans._most = 100_000
    net = Net()
    for length in range(1, 15):
        for seed in range(3):
            whole(net, Net.of_cells, mini_batch(seed, [length, 2]))
            assert plans.bytes == sum(one.bytes for one in plans._plans.values()) <= 100_000
    assert plans.hits > 10
