"""Graphs that differ in words, labels and masks alone have one plan, in which these are put where they belong."""

import random
from itertools import pairwise

import numpy as np
import pytest

import edbatch as eb
import edbatch.dynet as dy
from edbatch.runtime import evaluation, remembered, structures, type_table
from edbatch.runtime.backward import backward as backwards
from edbatch.runtime.remembered import Plans

DIM = 3
LENGTHS = (3, 1, 4, 3)


class Net:
    def __init__(self):
        self.model = eb.ParameterCollection(seed=0, dtype="float64")
        self.W, self.V = (self.model.add_parameters((DIM, DIM), name=name) for name in "WV")
        self.table = self.model.add_lookup_parameters((9, DIM), name="table")

    @eb.cell
    def step(self, h, word: int):
        return eb.tanh(self.W @ h + eb.lookup(self.table, word))

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
def plans(monkeypatch, nothing_learned):
    monkeypatch.setattr(remembered, "of_graphs", Plans())
    own = Plans()
    for module in (remembered, evaluation):
        monkeypatch.setattr(module, "of_structures", own)
    return own


def anew(function):
    """What a function computes when nothing is remembered."""
    with remembered.afresh():
        return function()


def check(function):
    """What is computed is, to the bit, what it is anew."""
    for one, other in zip(function(), anew(function), strict=True):
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
    return [*found, report.nodes, report.edges, report.batches]


FUNCTIONS = [Net.of_ops, Net.of_cells, Net.of_some]


@pytest.mark.parametrize("policy", ["none", "depth", "sufficient", None])
@pytest.mark.parametrize("saving", [False, True])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_other_words(plans, function, saving, policy):
    net = Net()
    for seed in range(5):
        check(lambda seed=seed: whole(net, function, mini_batch(seed), saving, policy))
        assert plans.hits == max(0, seed - 1)  # noted, kept, found
        net.W.set_value(net.W.value() * 1.1)


def test_a_way_is_planned_once(plans, monkeypatch):
    planned = []
    plan = backwards.planned
    monkeypatch.setattr(backwards, "planned", lambda *given: planned.append(1) or plan(*given))
    net = Net()
    for seed in range(4):
        whole(net, Net.of_cells, mini_batch(seed))
        assert len(planned) == min(seed + 1, 3)  # twice while nothing was known, and to be kept
    (kept,) = plans._plans.values()
    assert len(kept.ways) == 1


def test_what_comes_again_as_it_was_shares_its_records(plans):
    net = Net()
    # Kept by all integers; kept as a structure; found as one; the same, and kept by all integers, as it was seen.
    for seed, hits in [(0, (0, 0)), (1, (0, 0)), (2, (1, 0)), (2, (2, 0)), (2, (2, 1)), (0, (2, 2)), (3, (3, 2))]:
        check(lambda seed=seed: whole(net, Net.of_cells, mini_batch(seed)))
        assert (plans.hits, remembered.of_graphs.hits) == hits


def test_where_structures_do_not_come_again_few_are_looked_for(plans, monkeypatch):
    monkeypatch.setattr(remembered, "MOST_MISSED", 5)
    asked = []
    find = Plans.find
    monkeypatch.setattr(Plans, "find", lambda self, key: (self is plans and asked.append(1)) or find(self, key))
    net = Net()
    for length in range(1, 22):
        whole(net, Net.of_cells, mini_batch(0, [length]))
    assert len(asked) == 5 + 2  # of 16, two
    for seed in range(40):
        whole(net, Net.of_cells, mini_batch(seed, [3]))
    assert plans.hits > 15


def test_other_structures(plans):
    net = Net()
    for lengths in (LENGTHS, LENGTHS[:-1], LENGTHS[::-1]):
        check(lambda lengths=lengths: whole(net, Net.of_cells, mini_batch(1, lengths)))
    assert plans.hits == 0
    for policy in ("agenda", "depth"):
        check(lambda policy=policy: whole(net, Net.of_cells, mini_batch(2), policy=policy))
    with eb.options(split=False):
        check(lambda: whole(net, Net.of_cells, mini_batch(2)))
    assert plans.hits == 0
    for seed in (3, 4, 5):
        check(lambda seed=seed: whole(net, Net.of_cells, mini_batch(seed)))
    assert plans.hits == 2


def grown(net, losses):
    more = eb.sum([net.of_cells([1, 2]) * losses[0], net.of_ops([4, 4, 4])])
    more.backward()
    return [more.value(), losses[0].gradient(), *net.gradients()]


def again(net, losses):
    losses[1].backward()
    return [losses[1].gradient(), losses[2].gradient(), *net.gradients()]


@pytest.mark.parametrize("after", [[grown], [again, again], [again, grown, again], [grown, grown]])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_graphs_go_on(function, after):
    net = Net()
    for seed in range(4):
        check(lambda seed=seed: whole(net, function, mini_batch(seed), after=after))


def test_several_graphs_at_a_time(plans):
    net = Net()

    def run():
        graphs = []
        for seed in range(5):
            with eb.Graph(dtype="float64", seed=seed):
                losses = [net.of_cells(words) for words in mini_batch(seed)]
                graphs.append((losses[0], eb.sum(losses)))
        values = [loss.value() for _, loss in graphs]
        for first, loss in [*graphs, *graphs[::-1]]:
            loss.backward()
            values += [first.gradient(), *net.gradients()]
        return [*values, *((first * 2).value() for first, _ in graphs)]

    for _ in range(2):
        check(run)
    assert plans.hits > 3


def arrays(net, ids):
    with eb.Graph(dtype="float64", seed=int(ids[0])):
        xs = eb.lookup(net.table, ids)
        hs = eb.dropout(eb.tanh(net.W @ xs), 0.2)
        losses = eb.cross_entropy(net.V @ hs, ids % DIM)
        loss = eb.sum(losses)
        loss.backward()
        return [loss.value(), losses[3].gradient(), eb.forward(list(hs))[2], *net.gradients()]


@pytest.mark.parametrize("n", [5, 300, 1000])
def test_arrays(plans, n):
    net = Net()
    for seed in range(4):
        check(lambda seed=seed: arrays(net, np.random.default_rng(seed).integers(0, 9, n)))
        assert plans.hits == max(0, seed - 1)  # noted, kept, found


def test_arrays_too_large_are_not_gone_through(plans, monkeypatch):
    monkeypatch.setattr(remembered, "MOST_IN_BLOCKS", 100)
    for _ in range(3):
        check(lambda: arrays(Net(), np.arange(300) % 9))
    assert not plans._plans


def test_programs_in_the_style_of_dynet(plans):
    model = dy.ParameterCollection()
    E, W, b = model.add_lookup_parameters((20, 4)), model.add_parameters((20, 4)), model.add_parameters(20)
    lstm = dy.LSTMBuilder(1, 4, 4, model)

    def run(seed):
        dy.renew_cg()
        rng = random.Random(seed)
        words = [[rng.randrange(20) for _ in range(8)] for _ in range(5)]
        state, losses = lstm.initial_state(), []
        for now, following in pairwise(words):
            state = state.add_input(dy.lookup_batch(E, now))
            losses.append(dy.pickneglogsoftmax_batch(dy.affine_transform([b, W, state.output()]), following))
        loss = dy.sum_batches(dy.esum(losses))
        value = loss.value()
        loss.backward()
        found = [value, W.grad_as_array(), E.grad_as_array()]
        for parameter in model.parameters_list() + model.lookup_parameters_list():
            parameter.zero_grad()
        return found

    for seed in range(4):
        check(lambda seed=seed: run(seed))
    dy.close_cg()
    assert plans.hits == 1  # the first has stacked parameters


@pytest.mark.parametrize("recurrent", [False, True])
def test_cells_that_look_up_the_same_have_plans_of_their_own(plans, recurrent):
    model = eb.ParameterCollection(seed=0)
    table, W = model.add_lookup_parameters((9, 512)), model.add_parameters((512, 512))

    @eb.cell
    def leaf(word: int):
        return eb.tanh(W @ eb.lookup(table, word))

    @eb.cell
    def step(h, word: int):
        return eb.tanh(W @ eb.lookup(table, word) + eb.flip(h))

    def states(words):
        h = eb.lookup(table, words[0])
        return [h := step(h, word) if recurrent else leaf(word) for word in words]

    def run(words):
        with eb.Graph("sufficient") as graph:
            loss = eb.sum([eb.sum(h) for h in states(words)])
            loss.backward()
            found = [loss.value(), W.grad(), table.grad(), graph.report().nodes]
            model.zero_grad()
            return found

    alike, others = [[1, 1, 1, 1], [1, 1, 1, 2], [7, 7, 1, 1]], [[1, 2, 3, 4], [4, 3, 2, 0], [5, 6, 7, 8], [0, 8, 1, 3]]
    for words in (*alike, *others, *alike):
        check(lambda words=words: run(words))
    assert plans.hits == 2


def test_a_new_table_of_types(plans, monkeypatch):
    net = Net()
    monkeypatch.setattr(type_table, "_shared", {})
    check(lambda: whole(net, Net.of_cells, mini_batch(0)))
    type_table._shared.clear()
    for seed in range(4):
        check(lambda seed=seed: whole(net, Net.of_cells, mini_batch(seed)))
    assert plans.hits == 3


def test_nan_is_found_again(plans):
    table = eb.ParameterCollection().add_lookup_parameters((2, DIM))
    table.set_value(np.array([[1.0] * DIM, [-1.0] * DIM]))
    for word in (0, 1, 1, 0, 1):
        with eb.options(trace_lines=True), eb.Graph(check_nan=True), np.errstate(all="ignore"):
            y = eb.log(eb.lookup(table, word))
            if word:
                with pytest.raises(eb.EdBatchError, match=__file__):
                    y.value()
            else:
                assert not y.value().any()
    assert plans.hits == 2


def test_memory_is_bounded(plans, monkeypatch):
    monkeypatch.setattr(remembered, "MOST_IN_VAIN", 5)
    plans._most = 100_000
    net = Net()
    for length in range(1, 15):
        for seed in range(3):
            check(lambda seed=seed, length=length: whole(net, Net.of_cells, mini_batch(seed, [length, 2])))
            assert plans.bytes == sum(one.bytes for one in plans._plans.values()) <= 100_000
    assert plans.hits > 10


def test_tags_are_found_where_they_have_come_to_be():
    given = structures.places_of_all(np.array([4, 1]))
    listed = np.arange(6)
    given.tag(listed)
    assert listed.tolist() == [0, -3, 2, 3, -2, 5]
    moved = np.concatenate((listed[::-1], [-1], listed[:2]))
    structures.tagged_in(moved).put(moved, np.array([70, 80]))
    assert moved.tolist() == [5, 70, 3, 2, 80, 0, -1, 0, 80]
